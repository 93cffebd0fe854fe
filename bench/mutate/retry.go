package main

func retryMutations() []mutation {
	const (
		retried = "retry/retried.go"
		errs    = "retry/errors.go"
		budget  = "retry/budget.go"
		race    = "retry/race.go"
		backoff = "retry/backoff.go"
	)
	return []mutation{
		{
			rule: stopping, name: "a refusal is retried", file: errs,
			old: "!errors.Is(err, policy.ErrRejected) &&", new: "(true || !errors.Is(err, policy.ErrRejected)) &&",
		},
		{
			rule: stopping, name: "a retry that opts in does not wait for the circuit", file: retried,
			old: "refusal && hint <= wait {", new: "refusal {",
		},
		{
			rule: stopping, name: "a refusal of the first attempt is wrapped", file: retried,
			old: "if kind == errtree.Refusal && c.real {", new: "if kind == errtree.Refusal {",
		},
		{
			rule: stopping, name: "a wait beyond the deadline begins", file: retried,
			old: "case limited && wait >= time.Until(deadline):", new: "case limited && false && wait >= time.Until(deadline):",
		},
		{
			rule: stopping, name: "a wait that ends at the deadline begins", file: retried,
			old: "wait >= time.Until(deadline)", new: "wait > time.Until(deadline)",
		},
		{
			rule: stopping, name: "a refusal takes the place of the last real error", file: retried,
			old: "if kind == errtree.Failed || !c.real {", new: "if true {",
		},
		{
			rule: stopping, name: "the budget does not bind", file: retried,
			old: "	if !ok {\n		return 0, c.giveUp(callBudgetExhausted", new: "	if !ok && false {\n		return 0, c.giveUp(callBudgetExhausted",
		},
		{
			rule: stopping, name: "a server's hint has no limit", file: retried,
			old: "case hinted && wait > c.MaxRetryAfter:", new: "case hinted && false:",
		},
		{
			rule: stopping, name: "giving up early looks like the deadline", file: errs,
			old: `errtree.Reason("retry: the wait would exceed the context's deadline")`,
			new: `fmt.Errorf("retry: %w", context.DeadlineExceeded)`,
		},
		{
			rule: stopping, name: "one attempt too many", file: retried,
			old: "c.attempt >= c.Attempts", new: "c.attempt > c.Attempts",
		},
		{
			rule: stopping, name: "MaxElapsed does not bind", file: retried,
			old: "case c.MaxElapsed > 0 && wait", new: "case false && wait",
		},
		{
			rule: stopping, name: "a caller who left is not noticed", file: retried,
			old: "if ended := c.ctx.Err(); ended != nil {\n		return 0, c.canceled", new: "if ended := c.ctx.Err(); ended != nil && false {\n		return 0, c.canceled",
		},
		{
			rule: stopping, name: "a caller who leaves during a wait is not noticed", file: retried,
			old: "	if ended := c.ctx.Err(); ended != nil {\n		return end,", new: "	if ended := c.ctx.Err(); ended != nil && false {\n		return end,",
		},
		{
			rule: stopping, name: "a retry inside a retry multiplies", file: retried,
			old: "case !c.Nested && insideRetry(c.ctx):", new: "case false && insideRetry(c.ctx):",
		},
		{
			rule: stopping, name: "an inner retry that gave up is retried", file: retried,
			old: "!isPermanent(err) && !isFinal(err) &&", new: "!isPermanent(err) &&",
		},
		{
			rule: stopping, name: "a permanent error is retried", file: retried,
			old: "!isPermanent(err) && !isFinal(err) &&", new: "!isFinal(err) &&",
		},
		{
			rule: stopping, name: "the backoff does not start again after a hint", file: retried,
			old: "	case c.replaced && !replaced:\n		c.backoff.Reset()\n", new: "",
		},
		{
			rule: stopping, name: "a payment for nothing is kept", file: retried,
			old: "	if c.waiting {\n", new: "	if c.waiting && false {\n",
		},
		{
			rule: stopping, name: "a payment for an answer is kept", file: retried,
			old: "	c.payment.giveBack()\n	c.result = callNotRetryable", new: "	c.result = callNotRetryable",
		},
		{
			rule: stopping, name: "the budget multiplies", file: budget,
			old: "beyond/float64(calls) <= b.ratio", new: "beyond <= b.ratio*float64(calls)",
		},
		{
			rule: stopping, name: "the budget never refills", file: budget,
			old: "if bucket.epoch.Load() > epoch-budgetBuckets {", new: "if true {",
		},
		{
			rule: stopping, name: "the budget allows one more", file: budget,
			old: "b.allows(calls, spent+1)", new: "b.allows(calls, spent)",
		},
		{
			rule: stopping, name: "a call is deposited once for each layer", file: "policy/bind.go", tests: []string{"./retry"},
			old: "			b.LeaveDeposits()\n", new: "",
		},
		{
			rule: stopping, name: "waits have no jitter", file: backoff,
			old: "return 1 + rand.N(upTo)", new: "_ = rand.N(upTo)\n	return upTo",
		},
		{
			rule: stopping, name: "waits overflow", file: backoff,
			old: "if upTo <= f.limit/2 {", new: "if true {",
		},
		{
			rule: stopping, name: "a panic of an attempt is not counted", file: "retry/retry.go",
			old: "			r.counts[originalFailure].Add(1)\n			r.counts[callNotRetryable].Add(1)\n", new: "",
		},

		{
			rule: oneResult, name: "losers end without a cause", file: race,
			old: "a.cancel(ErrHedgeLost)", new: "a.cancel(nil)",
		},
		{
			rule: oneResult, name: "losers go on", file: race,
			old: "			a.cancel(ErrHedgeLost)\n", new: "",
		},
		{
			rule: oneResult, name: "a panic of an attempt is swallowed", file: race,
			old: "		panic(a.panics)\n", new: "		return false\n",
		},
		{
			rule: oneResult, name: "a Goexit of an attempt is swallowed", file: race,
			old: "			runtime.Goexit()\n", new: "			_ = runtime.Goexit\n			return false\n",
		},
		{
			rule: oneResult, name: "a failure wins the race", file: race,
			old: "	if row == originalWon {\n		a.settle(true)\n", new: "	if row == originalWon || a.err != nil {\n		a.settle(true)\n",
		},
		{
			rule: oneResult, name: "hedges begin after the caller left", file: race,
			old: "if r.shut || len(r.attempts) > r.MaxHedges || r.ctx.Err() != nil {", new: "if len(r.attempts) > r.MaxHedges {",
		},
		{
			rule: oneResult, name: "hedges begin after an answer that is final", file: race,
			old: "		a.payment.giveBack()\n		r.shut = true\n", new: "		a.payment.giveBack()\n",
		},
		{
			rule: oneResult, name: "one hedge too many", file: race,
			old: "len(r.attempts) > r.MaxHedges ||", new: "len(r.attempts) > r.MaxHedges+1 ||",
		},
		{
			rule: oneResult, name: "hedges cost no budget", file: race,
			old: "	if !ok {\n		r.shut = true\n", new: "	if !ok && false {\n		r.shut = true\n",
		},
		{
			rule: oneResult, name: "the values of losers stay open", file: race,
			old: "a.settle(false)", new: "_ = a",
		},
		{
			rule: oneResult, name: "a late panic ends the process", file: race,
			old: "if a.panics = recover(); a.panics != nil {", new: "if a.race.over {\n				return\n			}\n			if a.panics = recover(); a.panics != nil {",
		},
	}
}
