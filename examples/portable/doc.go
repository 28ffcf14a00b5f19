// Package portable gives the common shapes of package golden/common to published libraries that send the tools of servers to
// the providers of models, and checks what they send by the providers' rules.
package portable
