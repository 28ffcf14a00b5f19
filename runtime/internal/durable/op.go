package durable

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// op is one write that a caller waits for, and its answer.
type op struct {
	kind   WriteKind
	record taskstore.Record // to store or to remove
	quota  taskstore.Quota
	steps  []taskstore.Step // for Update: to store with the record
	parts  Parts
	counts bool            // whether the op may change accounts
	before taskstore.Usage // for Update: the usage of the record before
	from   []byte          // for Update: the mark of the record before
	mark   []byte          // of the record, except for those to remove

	// The answer.
	err      error
	existing string // with ErrExists: the ID of the record that has the idempotency key

	done chan struct{} // closed after the answer is set

	// The Committer's lock guards these.
	batch *batch // that has the op, or nil while the op waits
	left  bool   // whether the caller has stopped waiting
}

// newInsert makes the op that creates a record.
func newInsert(r taskstore.Record, quota taskstore.Quota) *op {
	r = copyRecord(&r)
	r.Version = 1
	return &op{kind: Insert, record: r, quota: quota, counts: true, mark: EncodeMark(&r)}
}

// newUpdate makes the op that replaces from by to.
func newUpdate(from, to taskstore.Record, quota taskstore.Quota, steps []taskstore.Step) *op {
	to.KeepFixed(&from)
	to = copyRecord(&to)
	to.Version = from.Version + 1
	before := from.Usage()
	return &op{
		kind: Update, record: to, quota: quota, steps: lastSteps(steps), counts: before != to.Usage(), before: before, from: EncodeMark(&from), mark: EncodeMark(&to),
		parts: Parts{
			Inputs:  len(from.Inputs)+len(to.Inputs) > 0 && !reflect.DeepEqual(from.Inputs, to.Inputs),
			Outcome: from.Outcome == nil && to.Outcome != nil,
			Moved:   from.Phase != to.Phase || from.Claim.Worker != to.Claim.Worker,
			Expiry:  !from.ExpiresAt.Equal(to.ExpiresAt),
		},
	}
}

// lastSteps returns the steps without those that a later one replaces: a statement of SQL cannot write a row twice.
func lastSteps(steps []taskstore.Step) []taskstore.Step {
	var last []taskstore.Step
	for i := range steps {
		if !slices.ContainsFunc(steps[i+1:], func(later taskstore.Step) bool { return later.Name == steps[i].Name }) {
			last = append(last, steps[i])
		}
	}
	return last
}

// size returns about how many bytes the op writes.
func (o *op) size() int64 {
	n := o.record.Size() - o.record.StepBytes
	for i := range o.steps {
		n += o.steps[i].Size()
	}
	return n
}

// copyRecord copies a record, and cuts times to the stored precision.
func copyRecord(r *taskstore.Record) taskstore.Record {
	c := r.Clone()
	for _, t := range []*time.Time{&c.CreatedAt, &c.UpdatedAt, &c.TerminalAt, &c.ExpiresAt} {
		*t = Time(Micros(*t))
	}
	return c
}

// copyInputs copies questions.
func copyInputs(inputs []taskstore.Input) []taskstore.Input {
	r := taskstore.Record{Inputs: inputs}
	return r.Clone().Inputs
}

// accountsOf returns the keys of a record's accounts.
func accountsOf(r *taskstore.Record) []string {
	keys := []string{AccountPrefix + r.Account, ServerAccount}
	if r.Principal == "" {
		keys = append(keys, AnonymousAccount)
	}
	if address := r.Address(); address != "" {
		keys = append(keys, AddressPrefix+address)
	}
	return keys
}

// nameOf returns a record's idempotency key.
func nameOf(r *taskstore.Record) Name { return Name{r.Principal, r.Tool, r.IdempotencyKey} }

// collectKeys returns the keys of the rows that the transaction of some ops reads.
func collectKeys(ops []*op) Keys {
	var k Keys
	for _, o := range ops {
		k.IDs = append(k.IDs, o.record.ID)
		if o.counts {
			k.Accounts = append(k.Accounts, accountsOf(&o.record)...)
		}
		if o.kind == Insert && o.record.IdempotencyKey != "" {
			k.Names = append(k.Names, nameOf(&o.record))
		}
	}
	k.IDs, k.Accounts = sortUnique(k.IDs, cmp.Compare), sortUnique(k.Accounts, cmp.Compare)
	k.Names = sortUnique(k.Names, func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Key, b.Key))
	})
	return k
}

func sortUnique[E comparable](list []E, compare func(a, b E) int) []E {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// decision is the state of one transaction while its ops are decided in turn.
type decision struct {
	*State
	plan   Plan
	counts map[string]bool // the accounts that have changed
}

// decide answers each op and returns the plan of the writes. Later ops see the writes of earlier ones.
func decide(ops []*op, s *State) *Plan {
	d := decision{State: s, counts: map[string]bool{}}
	for _, o := range ops {
		o.existing, o.err = "", nil
		switch o.kind {
		case Insert:
			o.err = d.create(o)
		case Update:
			o.err = d.update(o)
		case Remove, Bury:
			o.err = d.remove(o)
		}
	}
	d.plan.isPartial = len(d.plan.Writes) < len(ops)
	for _, key := range slices.Sorted(maps.Keys(d.counts)) {
		d.plan.Accounts = append(d.plan.Accounts, AccountUsage{key, s.Accounts[key]})
	}
	return &d.plan
}

func (d *decision) create(o *op) error {
	r := &o.record
	if o.isRepeated(d.Rows[r.ID]) {
		return nil
	}
	if id, ok := d.Names[nameOf(r)]; ok && r.IdempotencyKey != "" {
		o.existing = id
		return taskstore.ErrExists
	}
	if d.Rows[r.ID] != nil {
		return taskstore.ErrExists
	}
	usage := r.Usage()
	if err := o.quota.Check(r, d.readTally(r), usage); err != nil {
		return err
	}
	row := &Row{Version: r.Version, Created: Micros(r.CreatedAt), Bytes: usage.Bytes, Done: r.Done(), Mark: o.mark}
	if len(r.Inputs) > 0 {
		row.Asked = r.Version
	}
	d.Rows[r.ID] = row
	if r.IdempotencyKey != "" {
		d.Names[nameOf(r)] = r.ID
	}
	d.countUsage(r, usage, 1)
	d.write(o, row)
	return nil
}

func (d *decision) update(o *op) error {
	r := &o.record
	row := d.Rows[r.ID]
	switch {
	case row == nil:
		return taskstore.ErrNoRecord
	case o.isRepeated(row):
		return nil
	case row.Version != r.Version-1 || !o.isOf(row):
		return taskstore.ErrConflict
	}
	before, after := o.before, r.Usage()
	if o.counts {
		if err := o.quota.Check(r, d.readTally(r), taskstore.Usage{Bytes: after.Bytes - before.Bytes}); err != nil {
			return err
		}
		d.countUsage(r, before, -1)
		d.countUsage(r, after, 1)
	}
	row.Version, row.Bytes, row.Done, row.Mark = r.Version, after.Bytes, r.Done(), o.mark
	if o.parts.Inputs {
		row.Asked = r.Version
	}
	d.write(o, row)
	return nil
}

// isOf reports whether the op's record is that of the row. A new record may have got the ID of a
// former one, and reached the same version.
func (o *op) isOf(row *Row) bool {
	return row.Created == Micros(o.record.CreatedAt) && row.usage() == o.before && bytes.Equal(row.Mark, o.from)
}

// isRepeated reports whether the row has the op's write already: then its caller has missed the answer.
func (o *op) isRepeated(row *Row) bool {
	return o.record.Nonce != "" && row != nil && row.Version == o.record.Version && row.Created == Micros(o.record.CreatedAt) && bytes.Equal(row.Mark, o.mark)
}

func (d *decision) remove(o *op) error {
	r := &o.record
	row := d.Rows[r.ID]
	switch {
	case row == nil:
		return taskstore.ErrNoRecord
	case row.Version != r.Version || row.Created != Micros(r.CreatedAt):
		return taskstore.ErrConflict
	}
	delete(d.Rows, r.ID)
	if d.Names[nameOf(r)] == r.ID {
		delete(d.Names, nameOf(r))
	}
	d.countUsage(r, row.usage(), -1)
	d.write(o, row)
	return nil
}

// write adds an op to the plan. An earlier write of the same record then has the row's later state,
// which is harmless in one transaction.
func (d *decision) write(o *op, row *Row) {
	r := &o.record
	d.plan.Writes = append(d.plan.Writes, Write{Kind: o.kind, Record: r, Row: row, Parts: o.parts, Steps: o.steps})
	change := taskstore.Change{ID: r.ID}
	if o.kind == Insert || o.kind == Update {
		change = r.Change()
	}
	d.plan.Changes = append(d.plan.Changes, change)
}

// readTally returns the usage of a record's scopes.
func (d *decision) readTally(r *taskstore.Record) taskstore.Quota {
	q := taskstore.Quota{
		Account: d.Accounts[AccountPrefix+r.Account], Anonymous: d.Accounts[AnonymousAccount], Server: d.Accounts[ServerAccount],
	}
	if address := r.Address(); address != "" {
		q.Address = d.Accounts[AddressPrefix+address]
	}
	return q
}

// countUsage adds a usage to a record's accounts if n is 1, and takes it away if n is -1.
func (d *decision) countUsage(r *taskstore.Record, more taskstore.Usage, n int) {
	for _, key := range accountsOf(r) {
		u := d.Accounts[key]
		u.Stored += n * more.Stored
		u.Unfinished += n * more.Unfinished
		u.Bytes += int64(n) * more.Bytes
		d.Accounts[key] = u
		d.counts[key] = true
	}
}
