package wirecheck

// Which definition of the schemas is whose.

// legacyResults are the definitions of results of 2025-11-25, by method. A
// task's payload is always that of a tool's call.
var legacyResults = map[string]string{
	"initialize": "InitializeResult", "ping": "EmptyResult",
	"tools/list": "ListToolsResult", "tools/call": "CallToolResult",
	"tasks/get": "GetTaskResult", "tasks/result": "CallToolResult", "tasks/list": "ListTasksResult", "tasks/cancel": "CancelTaskResult",
	"prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult",
	"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
	"resources/subscribe": "EmptyResult", "resources/unsubscribe": "EmptyResult",
	"logging/setLevel": "EmptyResult", "completion/complete": "CompleteResult",
}

// formerly are the names that definitions had in the release candidate.
var candidateNames = map[string]string{"JSONRPCResultResponse": "JSONRPCResponse", "JSONRPCErrorResponse": "JSONRPCError"}

// modernResults are those of 2026-07-28.
var modernResults = map[string]string{
	"server/discover": "DiscoverResult",
	"tools/list":      "ListToolsResult", "tools/call": "CallToolResult",
	"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult", "tasks/cancel": "CancelTaskResult",
	"subscriptions/listen": "SubscriptionsListenResult",
	"prompts/list":         "ListPromptsResult", "prompts/get": "GetPromptResult",
	"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
	"completion/complete": "CompleteResult",
}

// legacyMessages are the definitions of what a server of 2025-11-25 sends
// unasked, by method.
var legacyMessages = map[string]string{
	"notifications/progress": "ProgressNotification", "notifications/message": "LoggingMessageNotification",
	"notifications/cancelled": "CancelledNotification", "notifications/tasks/status": "TaskStatusNotification",
	"notifications/tools/list_changed": "ToolListChangedNotification", "notifications/prompts/list_changed": "PromptListChangedNotification",
	"notifications/resources/list_changed": "ResourceListChangedNotification", "notifications/resources/updated": "ResourceUpdatedNotification",
	"notifications/elicitation/complete": "ElicitationCompleteNotification",
	"elicitation/create":                 "ElicitRequest", "sampling/createMessage": "CreateMessageRequest", "roots/list": "ListRootsRequest",
	"ping":      "PingRequest",
	"tasks/get": "GetTaskRequest", "tasks/result": "GetTaskPayloadRequest", "tasks/cancel": "CancelTaskRequest",
}

// modernMessages are those of 2026-07-28, where a server sends no requests.
var modernMessages = map[string]string{
	"notifications/progress": "ProgressNotification", "notifications/message": "LoggingMessageNotification",
	"notifications/cancelled": "CancelledNotification", "notifications/tasks": "TaskStatusNotification",
	"notifications/tools/list_changed": "ToolListChangedNotification", "notifications/prompts/list_changed": "PromptListChangedNotification",
	"notifications/resources/list_changed": "ResourceListChangedNotification", "notifications/resources/updated": "ResourceUpdatedNotification",
	"notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}
