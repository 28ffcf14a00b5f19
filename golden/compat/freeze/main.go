// Freeze keeps the generator's present output as that of a version, in golden/compat. It runs in the root of the
// repository: make freeze VERSION=v0.1.0.
package main

import (
	"fmt"
	"os"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/internal/released"
)

func main() {
	if len(os.Args) != 2 {
		fail("one version, please: make freeze VERSION=v0.1.0")
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		fail(err)
	}
	done, err := released.Freeze("golden/compat", string(changelog), os.Args[1])
	if err != nil {
		fail(err)
	}
	fmt.Println(done)
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, "freeze:", reason)
	os.Exit(1)
}
