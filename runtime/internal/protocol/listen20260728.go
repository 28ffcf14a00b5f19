package protocol

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20260728"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// NamesTasks reports whether a subscriptions/listen asks for tasks, even if it does so in a malformed
// way.
func (Server20260728) NamesTasks(params Params) bool {
	return params.Has("notifications", "taskIds") && string(params.Get("notifications", "taskIds")) != "null"
}

// Subscribe reads a subscriptions/listen that names tasks. It returns the ID of each task once (E-62).
func (Server20260728) Subscribe(params Params) (tasks []string, err error) {
	var asked wire.SubscriptionFilter
	if err := decodeValue(params, &asked, "notifications"); err != nil {
		return nil, err
	}
	for _, id := range asked.TaskIDs {
		if !slices.Contains(tasks, id) {
			tasks = append(tasks, id)
		}
	}
	return tasks, nil
}

// Acknowledged makes the first message of a subscription, which lists the tasks that the subscriber
// will hear of (E-63, E-68). id is the ID of the request.
func (Server20260728) Acknowledged(id json.RawMessage, tasks []string) ([]byte, error) {
	if tasks == nil {
		tasks = []string{} // none, and not nothing said
	}
	return notification(wire.NotificationSubscriptionsAcknowledged, wire.SubscriptionsAcknowledgedNotificationParams{
		Meta: subscriptionID(id), Notifications: wire.SubscriptionFilter{TaskIDs: tasks},
	})
}

// Changed makes the notification of a task's state. It has the result of tasks/get for the caller, without the type of
// the result (E-65, E-68).
func (Server20260728) Changed(ctx context.Context, s *taskserver.Backend, id json.RawMessage, caller taskserver.Caller, r taskstore.Record) ([]byte, error) {
	t, err := projectVisible20260728(ctx, s, caller, r)
	if err != nil {
		return nil, err
	}
	meta := subscriptionID(id)
	maps.Copy(meta, t.Meta)
	return notification(wire.NotificationTasks, wire.TaskStatusNotificationParams{
		Meta:   meta,
		TaskID: t.TaskID, Status: t.Status, StatusMessage: t.StatusMessage, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt,
		TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs, InputRequests: t.InputRequests, Result: t.Result, Error: t.Error,
	})
}

// Ended makes the result of a subscriptions/listen that the server ends.
func (Server20260728) Ended(id json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(wire.SubscriptionsListenResult{Meta: subscriptionID(id), ResultType: wire.ResultTypeComplete})
}

func subscriptionID(id json.RawMessage) object { return object{spec.MetaSubscriptionID: id} }

func notification(method string, params any) ([]byte, error) {
	return json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}
