package protocol

import (
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20260728"
)

// The methods of subscriptions.
const (
	Listen       = wire.MethodSubscriptionsListen
	Acknowledged = wire.NotificationSubscriptionsAcknowledged
	TaskChanged  = wire.NotificationTasks
)

// Subscriber is a Client of a revision in which servers tell of tasks in
// subscriptions.
type Subscriber interface {
	// Subscription makes the params that ask for a subscription, without their _meta.
	Subscription(taskIDs []string) map[string]any
	// Agreed reads from the acknowledgement of which tasks the server tells. tasks is false if it
	// tells of no tasks at all.
	Agreed(params json.RawMessage) (taskIDs []string, tasks bool, err error)
	// Told reads a notification, which has the whole task as a poll shows it.
	Told(params json.RawMessage) (mcptask.Snapshot, error)
}

// ReadSubscriptionID reads the ID of the request that a notification belongs to. It returns nil if
// the notification names none.
func ReadSubscriptionID(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta wire.NotificationMetaObject `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	return p.Meta.SubscriptionID
}

// Subscription implements Subscriber (E-62).
func (Client20260728) Subscription(taskIDs []string) map[string]any {
	return map[string]any{"notifications": wire.SubscriptionFilter{TaskIDs: taskIDs}}
}

// Agreed implements Subscriber (E-63).
func (Client20260728) Agreed(params json.RawMessage) ([]string, bool, error) {
	var p wire.SubscriptionsAcknowledgedNotificationParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, false, NewMalformedError(Listen, err)
	}
	return p.Notifications.TaskIDs, p.Notifications.TaskIDs != nil, nil
}

// Told implements Subscriber (E-65).
func (Client20260728) Told(params json.RawMessage) (mcptask.Snapshot, error) {
	return readSnapshot20260728(TaskChanged, params)
}
