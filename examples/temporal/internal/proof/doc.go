// Package proof tests executors on real engines. It kills their workers, and measures what tasks cost on them.
package proof
