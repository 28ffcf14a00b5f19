package wirecheck

// This file maps methods to definitions in the schemas.

// legacyResults maps methods to the definitions of their results in 2025-11-25. A task's payload is
// always the result of a tool call.
var legacyResults = map[string]string{
	"initialize": "InitializeResult", "ping": "EmptyResult",
	"tools/list": "ListToolsResult", "tools/call": "CallToolResult",
	"tasks/get": "GetTaskResult", "tasks/result": "CallToolResult", "tasks/list": "ListTasksResult", "tasks/cancel": "CancelTaskResult",
	"prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult",
	"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
	"resources/subscribe": "EmptyResult", "resources/unsubscribe": "EmptyResult",
	"logging/setLevel": "EmptyResult", "completion/complete": "CompleteResult",
}

// candidateNames maps definitions to their names in the release candidate.
var candidateNames = map[string]string{"JSONRPCResultResponse": "JSONRPCResponse", "JSONRPCErrorResponse": "JSONRPCError"}

// modernResults maps methods to the definitions of their results in 2026-07-28.
var modernResults = map[string]string{
	"server/discover": "DiscoverResult",
	"tools/list":      "ListToolsResult", "tools/call": "CallToolResult",
	"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult", "tasks/cancel": "CancelTaskResult",
	"subscriptions/listen": "SubscriptionsListenResult",
	"prompts/list":         "ListPromptsResult", "prompts/get": "GetPromptResult",
	"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
	"completion/complete": "CompleteResult",
}

// legacyMessages maps methods to the definitions of messages that a server of 2025-11-25 sends on
// its own.
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

// modernMessages is the same for 2026-07-28, in which servers send no requests.
var modernMessages = map[string]string{
	"notifications/progress": "ProgressNotification", "notifications/message": "LoggingMessageNotification",
	"notifications/cancelled": "CancelledNotification", "notifications/tasks": "TaskStatusNotification",
	"notifications/tools/list_changed": "ToolListChangedNotification", "notifications/prompts/list_changed": "PromptListChangedNotification",
	"notifications/resources/list_changed": "ResourceListChangedNotification", "notifications/resources/updated": "ResourceUpdatedNotification",
	"notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}
