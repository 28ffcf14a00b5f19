package mcptask

// Token is a call to be taken up again later, by this process or another. It
// is printable, and as secret as the task's ID.
type Token string
