package main

func limitMutations() []mutation {
	const (
		bulkhead = "bulkhead/bulkhead.go"
		queue    = "bulkhead/queue.go"
		permits  = "bulkhead/permits.go"
		limiter  = "ratelimit/limiter.go"
		tokens   = "ratelimit/queue.go"
		bucket   = "ratelimit/bucket.go"
	)
	return []mutation{
		{
			rule: holding, name: "a permit is given back before fn runs", file: bulkhead,
			old: "	defer b.release()\n", new: "	b.release()\n",
		},
		{
			rule: holding, name: "a panic keeps the permit", file: bulkhead,
			old: "	defer b.release()\n	if waited {\n		ctx = call.Restart(ctx)\n	}\n	return fn(ctx)\n",
			new: "	if waited {\n		ctx = call.Restart(ctx)\n	}\n	err = fn(ctx)\n	b.release()\n	return err\n",
		},
		{
			rule: holding, name: "one call too many", file: permits,
			old: "free(word) <= 0 || waiting(word) > 0", new: "free(word) < 0 || waiting(word) > 0",
		},
		{
			rule: holding, name: "a newcomer overtakes those who wait", file: permits,
			old: "free(word) <= 0 || waiting(word) > 0", new: "free(word) <= 0",
		},
		{
			rule: holding, name: "a waiter that leaves takes its permit along", file: queue,
			old: "		if !b.leave(c) {\n			b.release()\n		}\n", new: "		b.leave(c)\n",
		},
		{
			rule: holding, name: "a waiter that leaves still counts", file: queue,
			old: "	b.permits.leave()\n", new: "",
		},
		{
			rule: holding, name: "the queue holds one more", file: permits,
			old: "case waiting(word) >= queue:", new: "case waiting(word) > queue:",
		},
		{
			rule: holding, name: "a second release is not noticed", file: bulkhead,
			old: "if released.Swap(true) {", new: "if released.Swap(true) && false {",
		},
		{
			rule: holding, name: "a release wakes nobody", file: bulkhead,
			old: "	if b.permits.add(1) {\n", new: "	if b.permits.add(1) && false {\n",
		},
		{
			rule: holding, name: "an observer's panic keeps the permit", file: queue,
			old: "if !kept {", new: "if !kept && false {",
		},
		{
			rule: holding, name: "a call runs though its context ended in the queue", file: queue,
			old: "	if ctx.Err() != nil {\n		return b.canceled(ctx, c)\n	}\n", new: "",
		},
		{
			rule: holding, name: "the time in the queue is taken from the timeout further in", file: bulkhead,
			old: "		ctx = call.Restart(ctx)\n", new: "",
		},
		{
			rule: holding, name: "a call under a context that is done takes a permit", file: bulkhead,
			old: "	if err := ctx.Err(); err != nil {\n		return err\n	}\n	return b.DoAt", new: "	return b.DoAt",
		},

		{
			rule: refusals, name: "a call that cannot start in time waits", file: queue,
			old: "if hasDeadline && b.hopelessLocked(", new: "if hasDeadline && false && b.hopelessLocked(",
		},
		{
			rule: refusals, name: "a full bulkhead in shadow mode refuses", file: bulkhead,
			old: "	case b.cfg.Shadow:\n		b.pass()\n		return false, nil\n", new: "",
		},
		{
			rule: refusals, name: "a token is there for everybody", file: bucket,
			old: "{ return b.tokens.AllowN(now, 1) }", new: "{ b.tokens.AllowN(now, 1); return true }",
		},
		{
			rule: refusals, name: "a newcomer overtakes those who wait for a token", file: limiter,
			old: "if l.queue.len() > 0 || !l.bucket.take(now) {", new: "if !l.bucket.take(now) {",
		},
		{
			rule: refusals, name: "a wait that is too long is begun", file: tokens,
			old: "if !p.allows(p.start, wait+now.Sub(clock)) {\n		err", new: "if !p.allows(p.start, wait+now.Sub(clock)) && wait == never {\n		err",
		},
		{
			rule: refusals, name: "a token at the very deadline is waited for", file: tokens,
			old: "now+wait < p.deadline", new: "now+wait <= p.deadline",
		},
		{
			rule: refusals, name: "a rate of zero is waited for", file: tokens,
			old: "return wait < never && now+wait <= p.end", new: "return now+wait <= p.end",
		},
		{
			rule: refusals, name: "who wakes up late loses the time", file: tokens,
			old: "!l.bucket.take(l.queue.due)", new: "!l.bucket.take(now)",
		},
		{
			rule: refusals, name: "nobody moves up when one leaves", file: tokens,
			old: "	l.refusal = nil\n	l.wakeFirstLocked()\n}\n\nfunc (l *Limiter) wakeFirstLocked", new: "	l.refusal = nil\n}\n\nfunc (l *Limiter) wakeFirstLocked",
		},
		{
			rule: refusals, name: "a call that left keeps its place", file: tokens,
			old: "	l.queue.calls.Remove(c.place)\n	c.place = nil\n	l.refusal = nil\n	l.wake", new: "	c.place = nil\n	l.refusal = nil\n	l.wake",
		},
		{
			rule: refusals, name: "a clock that steps back blocks everybody", file: bucket,
			old: "	if b.waitsOut(clock) {\n", new: "	if true {\n",
		},
		{
			rule: refusals, name: "each refusal of a limiter makes an error", file: "ratelimit/telemetry.go",
			old: "	if l.refusal == nil {\n", new: "	if true {\n",
		},
		{
			rule: refusals, name: "a refusal outlives what it says", file: limiter,
			old: "	l.refusal = nil\n	return true\n", new: "	return true\n",
		},
		{
			rule: refusals, name: "a limiter in shadow mode refuses", file: limiter,
			old: "	if l.cfg.Shadow {\n		l.rehearse(ctx)\n		return false, nil\n	}\n", new: "",
		},
		{
			rule: refusals, name: "SetRate does not reach those who wait", file: limiter,
			old: "	l.reviseLocked(clock, now)\n}\n\n// Name", new: "	_ = clock\n}\n\n// Name",
		},
		{
			rule: refusals, name: "the wait for a token is taken from the timeout further in", file: limiter,
			old: "		ctx = call.Restart(ctx)\n", new: "",
		},
	}
}
