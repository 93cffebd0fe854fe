package main

// The rules.
const (
	threeOutcomes = "A result is a success, a failure, or says nothing"
	leases        = "A permit is a lease: it ends once, and counts only in the stay it was given in"
	settled       = "Whatever happens in fn is recorded, and goes on"
	oneStep       = "Asking and marking are one step; calls and observers run outside locks"
	clockwork     = "State follows from what is stored and the clock"
	ratios        = "Rules judge completed calls, by exact numbers"
	refusals      = "A refusal is cheap, and says when to come back"
	stopping      = "A retry stops where going on would do harm"
	holding       = "A permit is held until fn returns; timeouts wait for it"
	oneResult     = "One result of a call reaches the caller, and no other is left over"
	nothingLeaks  = "Nothing outlives its owner"
)

func breakerMutations() []mutation {
	const (
		admit      = "breaker/admit.go"
		settle     = "breaker/settle.go"
		generation = "breaker/generation.go"
		breaker    = "breaker/breaker.go"
		tell       = "breaker/tell.go"
		operate    = "breaker/operate.go"
		cooldown   = "breaker/cooldown.go"
	)
	return []mutation{
		{
			rule: threeOutcomes, name: "a result that says nothing is counted", file: settle,
			old: "if r.outcome == policy.Ignored || p.bystander {", new: "if p.bystander {",
		},
		{
			rule: threeOutcomes, name: "an outcome that is none is no failure", file: settle,
			old: "outcome != policy.Success && outcome != policy.Ignored", new: "outcome == policy.Failure",
		},
		{
			rule: threeOutcomes, name: "a call under a context that is done runs", file: breaker,
			old: "	if err := ctx.Err(); err != nil {\n		return err\n	}\n	if g := b.current", new: "	if g := b.current",
		},

		{
			rule: leases, name: "the generation is not checked", file: settle,
			old: "if p.gen != g {", new: "if p.gen != g && p.gen.state == HalfOpen && g.state != HalfOpen {",
		},
		{
			rule: leases, name: "the generation is taken for the state", file: settle,
			old: "if p.gen != g {", new: "if p.gen.state != g.state {",
		},
		{
			rule: leases, name: "a late result is not told from others", file: settle,
			old: "b.counts[table.late].Add(1)", new: "_ = p",
		},
		{
			rule: leases, name: "the probe guard is gone", file: admit,
			old: "ok = g.running.Len() < b.config.Probes", new: "ok = true",
		},
		{
			rule: leases, name: "one probe too many", file: admit,
			old: "g.running.Len() < b.config.Probes", new: "g.running.Len() <= b.config.Probes",
		},
		{
			rule: leases, name: "a probe keeps its slot", file: settle,
			old: "g.running.End(p.run)", new: "_ = p.run",
		},
		{
			rule: leases, name: "a probe's lease has no end", file: generation,
			old: "p.end = after(start, b.config.ProbeTimeout)", new: "_ = start",
		},
		{
			rule: leases, name: "a permit that is done twice counts twice", file: "breaker/permit.go",
			old: "if p.done.Swap(true) {", new: "if p.done.Swap(true) && false {",
		},
		{
			rule: leases, name: "a Reset leaves running calls in their generation", file: operate,
			old: "b.current.Store(b.closedSince(g.since))", new: "_ = g.since",
		},
		{
			rule: leases, name: "closing does not clear the window", file: generation,
			old: "	case Closed:\n		b.clearLocked(m.at)\n", new: "	case Closed:\n",
		},
		{
			rule: leases, name: "clearing leaves the failures in a row", file: generation,
			old: "	b.consecutive = 0\n", new: "",
		},
		{
			rule: leases, name: "clearing leaves the times of failures", file: generation,
			old: "		b.failures.Clear()\n", new: "",
		},
		{
			rule: leases, name: "one success closes, however many are asked for", file: settle,
			old: "g.successes >= b.config.ProbeSuccesses", new: "g.successes >= 1",
		},

		{
			rule: settled, name: "a panic is a success", file: settle,
			old: "result{outcome: policy.Failure", new: "result{outcome: policy.Success",
		},
		{
			rule: settled, name: "a panic is not recorded", file: breaker,
			old: "	defer func() { b.settle(ctx, &p, &r) }()\n	err := fn(ctx)\n	r.err = err\n	b.judge(ctx, &r)\n",
			new: "	err := fn(ctx)\n	r.err = err\n	b.judge(ctx, &r)\n	b.settle(ctx, &p, &r)\n",
		},
		{
			rule: settled, name: "a panic is swallowed", file: breaker,
			old: "defer func() { b.settle(ctx, &p, &r) }()", new: "defer func() { _ = recover(); b.settle(ctx, &p, &r) }()",
		},
		{
			rule: settled, name: "an observer's panic takes the place of fn's", file: settle,
			old: "b.tell(r.returned)", new: "b.tell(true)",
		},
		{
			rule: settled, name: "an observer's panic at admission keeps the slot", file: tell,
			old: "if !told {", new: "if !told && false {",
		},
		{
			rule: settled, name: "an observer's panic ends all telling", file: tell,
			old: "		b.telling = false\n", new: "",
		},
		{
			rule: settled, name: "a panic of Classify is not recorded", file: "breaker/permit.go",
			old: "	defer func() { p.breaker.settle(p.ctx, &p.permit, &r) }()\n	p.breaker.judge(p.ctx, &r)\n",
			new: "	p.breaker.judge(p.ctx, &r)\n	p.breaker.settle(p.ctx, &p.permit, &r)\n",
		},

		{
			rule: oneStep, name: "admission takes no lock", file: admit, race: true,
			old: "	b.mu.Lock()\n	defer b.mu.Unlock()\n	g := b.passLocked(ctx, now)\n	now = max", new: "	g := b.passLocked(ctx, now)\n	now = max",
		},
		{
			rule: oneStep, name: "observers are told under the lock", file: tell,
			old: "	b.mu.Unlock()\n	defer b.mu.Lock()\n	call.Tell", new: "	call.Tell",
		},
		{
			rule: oneStep, name: "two tell at once", file: tell,
			old: "	if b.telling {\n		return\n	}\n", new: "",
		},
		{
			rule: oneStep, name: "a change is told without the context of whoever set it off", file: tell,
			old: "change{ctx, e}", new: "change{context.WithoutCancel(context.Background()), e}",
		},

		{
			rule: clockwork, name: "half-open begins when somebody looks", file: generation,
			old: "phase{state: HalfOpen, since: p.end, end: never}", new: "phase{state: HalfOpen, since: now, end: never}",
		},
		{
			rule: clockwork, name: "a lost probe reopens when somebody looks", file: generation,
			old: "phase{state: Open, since: p.end, end: after(p.end, p.wait), wait: p.wait}",
			new: "phase{state: Open, since: now, end: after(now, p.wait), wait: p.wait}",
		},
		{
			rule: clockwork, name: "looking moves the breaker on", file: "breaker/stats.go",
			old: "return b.lookLocked().phase.state", new: "return b.presentLocked().state",
		},
		{
			rule: clockwork, name: "the wait after a failed probe is not the one that was drawn", file: generation,
			old: "			g.wait = old.wait\n", new: "			g.wait = b.config.cooldown(b.openings, g.draw)\n",
		},
		{
			rule: clockwork, name: "waits do not grow", file: generation,
			old: "		b.openings++\n", new: "",
		},
		{
			rule: clockwork, name: "closing alone forgets the growth", file: cooldown,
			old: "	if forget == 0 {\n		return openings\n	}\n", new: "	if forget == 0 {\n		return 0\n	}\n",
		},
		{
			rule: clockwork, name: "growth is never forgotten", file: cooldown,
			old: "int(min(forget, math.MaxInt32)))", new: "0*int(min(forget, math.MaxInt32)))",
		},
		{
			rule: clockwork, name: "a Reset keeps the growth", file: operate,
			old: "	b.openings = 0\n", new: "",
		},
		{
			rule: clockwork, name: "waits exceed MaxCooldown", file: cooldown,
			old: "min(middle*(1+c.Jitter), limit)", new: "middle*(1+c.Jitter)",
		},
		{
			rule: clockwork, name: "a clock may step back", file: "breaker/clock.go",
			old: "		if now <= latest {\n			return time.Duration(latest)\n		}\n", new: "		if now <= latest {\n			return time.Duration(now)\n		}\n",
		},
		{
			rule: clockwork, name: "an open breaker refuses an instant too long", file: admit,
			old: "now < g.end && !b.config.Shadow", new: "now <= g.end && !b.config.Shadow",
		},
		{
			rule: clockwork, name: "a result does not see that its stay is over", file: settle,
			old: "		g = b.passLocked(ctx, now)\n", new: "		_ = ctx\n",
		},

		{
			rule: ratios, name: "a ratio judges any number of calls", file: settle,
			old: "c.Calls >= cfg.MinCalls && ratio", new: "ratio",
		},
		{
			rule: ratios, name: "the minimum sample is one less", file: settle,
			old: "c.Calls >= cfg.MinCalls && ratio", new: "c.Calls >= cfg.MinCalls-1 && ratio",
		},
		{
			rule: ratios, name: "the ratio itself does not open", file: settle,
			old: "ratio >= cfg.FailureRatio:", new: "ratio > cfg.FailureRatio:",
		},
		{
			rule: ratios, name: "the ratio is multiplied out", file: settle,
			old: "ratio >= cfg.FailureRatio:", new: "float64(c.Failed) >= cfg.FailureRatio*float64(c.Calls):",
		},
		{
			rule: ratios, name: "a success does not end the failures in a row", file: settle,
			old: "		b.consecutive = 0\n		return\n", new: "		return\n",
		},
		{
			rule: ratios, name: "old calls stay in the window", file: "internal/window/sliding.go", tests: []string{"./internal/window", "./breaker"},
			old: "		sum.sub(w.bucket[(w.current+1+i)%buckets])\n", new: "		_ = i\n",
		},
		{
			rule: ratios, name: "a failure as old as the window counts", file: "internal/window/latest.go", tests: []string{"./internal/window", "./breaker"},
			old: "l.last-l.at[l.next] < span", new: "l.last-l.at[l.next] <= span",
		},
		{
			rule: ratios, name: "running calls that are slow do not count", file: settle,
			old: "c.Slow+running, c.Calls+running", new: "c.Slow+0*running, c.Calls",
		},
		{
			rule: ratios, name: "slow calls are not judged at admission", file: admit,
			old: "if g.state == Closed && b.config.SlowCall > 0 {", new: "if false {",
		},
		{
			rule: ratios, name: "a probe that is slow has succeeded", file: settle,
			old: "b.probedLocked(ctx, g, r, failed || slow)", new: "b.probedLocked(ctx, g, r, failed)",
		},
		{
			rule: ratios, name: "a forced breaker opens by itself", file: settle,
			old: "	if g.state != Closed {\n		return\n	}\n", new: "",
		},
		{
			rule: ratios, name: "a hint opens for longer than MaxCooldown", file: settle,
			old: "b.tripLocked(ctx, move{reason: reasonHint, cause: r.err, wait: min(r.hint, b.config.MaxCooldown)})",
			new: "b.tripLocked(ctx, move{reason: reasonHint, cause: r.err, wait: r.hint})",
		},

		{
			rule: refusals, name: "each refusal makes an error", file: admit,
			old: "	return g.refusal\n}", new: "	e := *g.refusal\n	return &e\n}",
		},
		{
			rule: refusals, name: "a refusal does not say when to come back", file: generation,
			old: "		retryAt = b.clock.time(g.end)\n", new: "",
		},
		{
			rule: refusals, name: "a refusal at half-open says when, though nobody knows", file: generation,
			old: "var retryAt time.Time", new: "retryAt := b.clock.time(m.at)",
		},
		{
			rule: refusals, name: "shadow mode refuses", file: admit,
			old: "		if !b.config.Shadow {\n", new: "		if true {\n",
		},
		{
			rule: refusals, name: "shadow mode judges what would not have run", file: admit,
			old: "p.bystander = !g.state.admits()", new: "p.bystander = false",
		},
		{
			rule: refusals, name: "a ramp-up lets everybody in", file: admit,
			old: "	if g.credit < wholeShare {\n		return false\n	}\n", new: "",
		},
	}
}
