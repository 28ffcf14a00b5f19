// Package proof tests executors on real engines. It kills their workers, and measures the cost of tasks on them.
package proof
