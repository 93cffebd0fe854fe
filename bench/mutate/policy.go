package main

func policyMutations() []mutation {
	const (
		classify = "policy/classify.go"
		errtree  = "internal/errtree/errtree.go"
		timeout  = "policy/timeout.go"
		limited  = "policy/limited.go"
		fallback = "policy/fallback.go"
		pipeline = "policy/pipeline.go"
		values   = "policy/values.go"
		group    = "policy/group.go"
	)
	both := []string{"./policy", "./breaker"}
	return []mutation{
		{
			rule: threeOutcomes, name: "a caller who cancels is a failure", file: classify, tests: both,
			old: "	case ctx.Err() == context.Canceled:\n		return Ignored\n", new: "	case ctx.Err() == context.Canceled:\n		return Failure\n",
		},
		{
			rule: threeOutcomes, name: "a caller who cancels is a success", file: classify, tests: both,
			old: "	case ctx.Err() == context.Canceled:\n		return Ignored\n", new: "	case ctx.Err() == context.Canceled:\n		return Success\n",
		},
		{
			rule: threeOutcomes, name: "a Canceled that nobody asked for says nothing", file: classify, tests: both,
			old: "	return Failure\n}", new: "	if err == context.Canceled {\n		return Ignored\n	}\n	return Failure\n}",
		},
		{
			rule: threeOutcomes, name: "the caller's deadline says nothing", file: classify, tests: both,
			old: "ctx.Err() == context.Canceled", new: "ctx.Err() != nil",
		},
		{
			rule: threeOutcomes, name: "a refusal is a failure", file: classify, tests: both,
			old: "	case kind == errtree.Refusal:\n		return Ignored\n", new: "",
		},
		{
			rule: threeOutcomes, name: "a healthy answer is a failure", file: classify, tests: both,
			old: "	case kind == errtree.Healthy:\n		return Success\n", new: "",
		},
		{
			rule: threeOutcomes, name: "a refusal hides a failure beside it", file: errtree, tests: []string{"./policy"},
			old: "			kind = max(kind, sort(inner))\n", new: "			if kind = max(kind, sort(inner)); kind == Refusal {\n				return kind\n			}\n",
		},
		{
			rule: threeOutcomes, name: "a timeout is what fn said when it was cut", file: errtree, tests: []string{"./policy", "./breaker"},
			old: "		if is.Is(context.DeadlineExceeded) {\n			return Failed // a", new: "		if false && is.Is(context.DeadlineExceeded) {\n			return Failed // a",
		},
		{
			rule: threeOutcomes, name: "a reason weighs as much as a failure", file: errtree, tests: []string{"./policy", "./retry"},
			old: "			return Refusal\n		}\n		return None\n	}", new: "			return Refusal\n		}\n		return Failed\n	}",
		},

		{
			rule: holding, name: "nil after the limit becomes an error", file: timeout,
			old: "	case mine && returned && err == nil:\n		result = timeoutLate\n", new: "",
		},
		{
			rule: holding, name: "an error after the limit stays what it is", file: timeout,
			old: "	if result != timeoutTimedOut {\n", new: "	if true {\n",
		},
		{
			rule: holding, name: "another's deadline is taken for the timeout's own", file: timeout,
			old: "mine := ended && context.Cause(c) == error(&c.cause)", new: "mine := ended",
		},
		{
			rule: holding, name: "a huge limit has passed already", file: timeout,
			old: "if end < time.Duration(now) {", new: "if end < time.Duration(now) && end > 0 {",
		},
		{
			rule: holding, name: "the limit passes unnoticed until somebody waits", file: limited,
			old: "	if c.Context.Err() == nil && instant.Now() < c.end {\n", new: "	if c.Context.Err() == nil {\n",
		},
		{
			rule: holding, name: "the parent's end passes unnoticed until somebody waits", file: limited,
			old: "	if c.Context.Err() == nil && instant.Now() < c.end {\n", new: "	if instant.Now() < c.end {\n",
		},
		{
			rule: holding, name: "Cause does not know of an end that nobody waited for", file: limited,
			old: "		_ = c.Err()", new: "		_ = c",
		},
		{
			rule: holding, name: "the deadline is the limit's, though the caller's comes first", file: limited,
			old: "ok && outer.Before(own)", new: "ok && outer.Before(own) && false",
		},

		{
			rule: nothingLeaks, name: "a context outlives its call", file: limited,
			old: "		c.armed.Load().cancel()\n", new: "",
		},
		{
			rule: nothingLeaks, name: "a context that nobody asked for has not ended after its call", file: limited,
			old: "	if !c.armed.CompareAndSwap(nil, released) {\n", new: "	if c.armed.Load() != nil {\n",
		},
		{
			rule: nothingLeaks, name: "a context sets a timer whether it is asked for or not", file: timeout,
			old: "	returned := false\n	defer func() { err = t.settle", new: "	c.arm()\n	returned := false\n	defer func() { err = t.settle",
		},
		{
			rule: nothingLeaks, name: "an observer keeps the policy alive", file: "policy/observe/observe.go", tests: []string{"./otelx", "./bulkhead"},
			old: "		p := ref.Value()\n", new: "		_, p := ref, p\n",
		},
		{
			rule: nothingLeaks, name: "a policy that is gone is not detached", file: "policy/observe/observe.go", tests: []string{"./otelx"},
			old: "		runtime.AddCleanup(p, Probe.Detach, probe)\n", new: "",
		},
		{
			rule: nothingLeaks, name: "a group grows", file: group,
			old: "			g.removeLocked(victim)\n", new: "			g.cfg.Max++\n",
		},
		{
			rule: nothingLeaks, name: "a group drops what is in use", file: group,
			old: "			if !g.inUse(m) {\n				return m, false\n", new: "			if !g.inUse(m) || true {\n				return m, false\n",
		},
		{
			rule: nothingLeaks, name: "a group drops a policy that runs a call", file: group,
			old: "	if pinned {\n		return true\n	}\n", new: "	_ = pinned\n",
		},
		{
			rule: nothingLeaks, name: "a build that panics wedges the group", file: group,
			old: "		if !built {\n", new: "		if !built && false {\n",
		},

		{
			rule: settled, name: "a fallback runs for a healthy answer", file: fallback,
			old: "errtree.Sort(err) == errtree.Healthy", new: "errtree.Sort(err) == errtree.Healthy && false",
		},
		{
			rule: settled, name: "a fallback runs for a caller who left", file: fallback,
			old: " || errtree.Sort(err) == errtree.Healthy || ctx.Err() != nil", new: " || errtree.Sort(err) == errtree.Healthy",
		},
		{
			rule: settled, name: "a fallback's error hides the original", file: fallback,
			old: `	return fmt.Errorf("policy: fallback: %w (after: %w)", own, err)`, new: `	_ = fmt.Errorf
	return own`,
		},
		{
			rule: settled, name: "a pipeline runs under a context that is done", file: pipeline,
			old: "	if err := ctx.Err(); err != nil {\n		return err\n	}\n	c := &pipelineCall", new: "	c := &pipelineCall",
		},
		{
			rule: settled, name: "a call that panics stays active", file: pipeline,
			old: "	defer func() { p.settle(c, err, returned) }()\n", new: "	defer func() {\n		if returned {\n			p.settle(c, err, returned)\n		}\n	}()\n",
		},
		{
			rule: settled, name: "an observer's panic takes the place of fn's, in any policy", file: "internal/call/call.go", tests: []string{"./policy", "./breaker"},
			old: "	if !fnReturned {\n", new: "	if !fnReturned && false {\n",
		},

		{
			rule: oneResult, name: "a value that nobody gets stays open", file: values,
			old: "		if !b.gave(v) {\n", new: "		if !b.gave(v) && false {\n",
		},
		{
			rule: oneResult, name: "the value of an earlier attempt stays open", file: values,
			old: "case had && !same(old, v):", new: "case had && !same(old, v) && false:",
		},
		{
			rule: oneResult, name: "a value that was given to the caller is closed", file: values,
			old: "		if !b.gave(v) {\n", new: "		if true {\n",
		},
		{
			rule: oneResult, name: "a value that is returned twice is closed", file: values,
			old: "had && !same(old, v)", new: "had",
		},
		{
			rule: oneResult, name: "a fork forks the nearest value only", file: values, tests: []string{"./policy", "./retry"},
			old: "&sight{s.cell.fork(), s.outer.fork()}", new: "&sight{s.cell.fork(), s.outer}",
		},
		{
			rule: oneResult, name: "settling again changes the fate", file: values,
			old: "	if b.fate != undecided {\n		b.mu.Unlock()\n		return\n	}\n", new: "",
		},
		{
			rule: oneResult, name: "a FallbackValue of another type is taken", file: fallback,
			old: "		into, ok := target(ctx).(*branch[T])\n		if !ok {\n", new: "		into, ok := target(ctx).(*branch[T])\n		if !ok && target(ctx) == nil {\n			return nil\n		}\n		if !ok {\n",
		},
	}
}

// mutations are all of them, by rule.
func mutations() (all []mutation) {
	var every []mutation
	for _, some := range [][]mutation{breakerMutations(), retryMutations(), limitMutations(), policyMutations()} {
		every = append(every, some...)
	}
	for _, rule := range []string{threeOutcomes, leases, settled, oneStep, clockwork, ratios, refusals, stopping, holding, oneResult, nothingLeaks} {
		for _, m := range every {
			if m.rule == rule {
				all = append(all, m)
			}
		}
	}
	return all
}
