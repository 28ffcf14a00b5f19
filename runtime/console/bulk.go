package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// bulk is what an action on the chosen tasks of a list has done.
type bulk struct {
	// Done says how many tasks it was done to, or is "".
	Done string
	// Problems name the others, with the reasons.
	Problems []string
}

// bulkActions are the actions on chosen tasks, with what they have done to them.
var bulkActions = map[string]string{"cancel": "cancelled", "again": "run again, as new tasks"}

// describeBulk says to how many of the chosen tasks an action was done. It returns false if there is no such action.
func describeBulk(action string, done, chosen int) (string, bool) {
	did, ok := bulkActions[action]
	if !ok {
		return "", false
	}
	tasks := strconv.Itoa(chosen) + " tasks"
	if chosen == 1 {
		tasks = "1 task"
	}
	if done < chosen {
		tasks = fmt.Sprintf("%d of %s", done, tasks)
	}
	return tasks + " " + did + ".", true
}

// actOnChosen does an action to each of the chosen tasks of a list. Each is in the audit trail. Then it goes back to the
// list, which names the tasks that refuse it.
func (c *Console) actOnChosen(w http.ResponseWriter, r request) error {
	if !r.viewer.Act {
		return errMayNot
	}
	r.Body = http.MaxBytesReader(w, r.Body, answerLength)
	if err := r.ParseForm(); err != nil {
		return failure{http.StatusBadRequest, "the form cannot be read"}
	}
	chosen, action := r.PostForm["task"], r.PostForm.Get("action")
	values, _ := url.ParseQuery(r.PostForm.Get("list")) // an unreadable part is left out, as on the page
	q := newQuery(values)
	_, isKnown := bulkActions[action]
	switch {
	case !isKnown:
		return failure{http.StatusBadRequest, "there is no such action"}
	case len(chosen) == 0:
		return failure{http.StatusBadRequest, "no task was chosen"}
	case len(chosen) > pageSize:
		return failure{http.StatusBadRequest, fmt.Sprintf("%d tasks were chosen, and at most %d can be", len(chosen), pageSize)}
	}
	done, problems, status := 0, []string(nil), http.StatusOK
	for i, reference := range chosen {
		err := c.actOnce(r, action, reference)
		if err == nil {
			done++
			continue
		}
		f := c.explain(err)
		_, id, _ := parseReference(reference)
		problems, status = append(problems, id+": "+f.text), f.status
		if rest := len(chosen) - i - 1; f.status == http.StatusServiceUnavailable && rest > 0 {
			problems = append(problems, fmt.Sprintf("%d more were not tried", rest))
			break
		}
	}
	if problems == nil {
		c.goTo(w, "tasks?"+q.encode()+"&did="+action+"&count="+strconv.Itoa(done))
		return nil
	}
	l, err := c.readList(r.Context(), q, r.viewer)
	if err != nil {
		return err
	}
	l.Bulk.Problems = problems
	if done > 0 {
		l.Bulk.Done, _ = describeBulk(action, done, len(chosen))
	}
	return c.writeList(w, status, r, l)
}

// actOnce does an action to one task.
func (c *Console) actOnce(r request, action, reference string) error {
	record, err := c.seekTask(r.Context(), reference)
	if err != nil {
		return err
	}
	operator := c.server.Operator(r.viewer.Name)
	if action == "again" {
		_, err = operator.RunAgain(r.Context(), record.ID)
		return err
	}
	return operator.Cancel(r.Context(), record.ID)
}
