package taskserver

const renewEvery = leaseFor / 3

// CountProgress returns how many tasks a server has progress notifications for.
func (b *Backend) CountProgress() (n int) {
	b.progress.Range(func(any, any) bool { n++; return true })
	return n
}
