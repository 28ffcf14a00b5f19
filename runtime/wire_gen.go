package mcptask

type Status string

const (
	StatusWorking       Status = "working"
	StatusInputRequired Status = "input_required"
	StatusCompleted     Status = "completed"
	StatusFailed        Status = "failed"
	StatusCancelled     Status = "cancelled"
)

func (s Status) Terminal() bool { return s == "completed" || s == "failed" || s == "cancelled" }

const (
	CodeInternalError  = -32603
	CodeInvalidParams  = -32602
	CodeMethodNotFound = -32601
)
