package taskserver_test

import (
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// The server waits longer for one client than for those that it knows.
func ExampleKnownClient() {
	options := taskserver.Options{ClientProfile: func(client taskserver.ClientInfo) taskserver.ClientProfile {
		if client.Name == "our-assistant" {
			return taskserver.ClientProfile{Patience: 10 * time.Minute}
		}
		return taskserver.KnownClient(client)
	}}
	fmt.Println(options.ClientProfile(taskserver.ClientInfo{Name: "our-assistant"}).Patience)
	fmt.Println(options.ClientProfile(taskserver.ClientInfo{Name: "mcporter"}).Patience)
	// Output:
	// 10m0s
	// 1m0s
}
