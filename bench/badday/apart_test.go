package badday

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"time"
)

// A row that is run apart tells which by the environment, and what came of it on its standard output.
const (
	childVariable = "BADDAY_ROW"
	patience      = 10 * time.Second
)

type errand struct {
	Row, Library string
	Remedied     bool
}

type report struct {
	Kind kind
	Seen string
}

// inProcess runs a row in a process of its own.
func inProcess(r row, l library, remedied bool) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	todo, err := json.Marshal(errand{r.id, l.name, remedied})
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(todo))
	var told bytes.Buffer
	cmd.Stdout = &told
	err = cmd.Run()
	var got report
	switch {
	case ctx.Err() != nil:
		return failed("hangs")
	case err != nil:
		return failed("the process dies")
	}
	if err := json.Unmarshal(told.Bytes(), &got); err != nil {
		panic(err)
	}
	return verdict{got.Kind, got.Seen}
}

// runChild does the errand that this process was started for, if it was for one.
func runChild() bool {
	var todo errand
	if json.Unmarshal([]byte(os.Getenv(childVariable)), &todo) != nil {
		return false
	}
	for _, r := range rows() {
		for _, l := range libraries() {
			if r.id != todo.Row || l.name != todo.Library {
				continue
			}
			if todo.Remedied {
				l.remedies[r.id].apply(&l)
			}
			v := r.run(&l)
			if err := json.NewEncoder(os.Stdout).Encode(report{v.kind, v.seen}); err != nil {
				panic(err)
			}
		}
	}
	return true
}
