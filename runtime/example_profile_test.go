package mcptask_test

import (
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// The server waits longer for one client than for those that it knows.
func ExampleKnownClient() {
	options := mcptask.Options{ClientProfile: func(client mcptask.ClientInfo) mcptask.ClientProfile {
		if client.Name == "our-assistant" {
			return mcptask.ClientProfile{Patience: 10 * time.Minute}
		}
		return mcptask.KnownClient(client)
	}}
	fmt.Println(options.ClientProfile(mcptask.ClientInfo{Name: "our-assistant"}).Patience)
	fmt.Println(options.ClientProfile(mcptask.ClientInfo{Name: "mcporter"}).Patience)
	// Output:
	// 10m0s
	// 1m0s
}
