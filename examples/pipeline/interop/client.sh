#!/usr/bin/env bash
# Creates, polls and reads a task of 2026-07-28 with nothing but curl:
#   bash client.sh http://127.0.0.1:8080/mcp
set -euo pipefail
url=${1:?usage: client.sh URL}

# Every request says of itself what it speaks and what it can do: there is no session.
meta='"_meta": {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "1.0.0"},
  "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
}'

# request METHOD NAME PARAMS sends one request. The headers repeat the method and the name of
# what is addressed, so that a proxy need not read the body.
request() {
  curl --silent --show-error --fail-with-body --max-time 30 "$url" \
    --header 'Content-Type: application/json' \
    --header 'Accept: application/json, text/event-stream' \
    --header 'MCP-Protocol-Version: 2026-07-28' \
    --header "Mcp-Method: $1" \
    --header "Mcp-Name: $2" \
    --data "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"$1\", \"params\": {$3, $meta}}" |
    sed -n 's/^data: //; /^{/p' # the reply is JSON, or one event with the JSON
}

# field NAME reads a string or a number out of a reply.
field() {
  grep -oE "\"$1\": *(\"[^\"]*\"|[0-9]+)" | head -n 1 | sed -E 's/^[^:]*: *//; s/"//g'
}

reply=$(request tools/call run_pipeline \
  '"name": "run_pipeline", "arguments": {"repository": "shop", "branch": "main"}')
echo "create: $reply"
id=$(field taskId <<<"$reply")
[[ -n $id ]] || { echo "no task was created" >&2; exit 1; }

for _ in {1..60}; do
  reply=$(request tasks/get "$id" "\"taskId\": \"$id\"")
  status=$(field status <<<"$reply")
  echo "poll: $status"
  case $status in
  working) sleep 0.5 ;; # the server's own interval is in pollIntervalMs
  completed)
    echo "result: $reply"
    exit 0
    ;;
  *)
    echo "the task ended $status: $reply" >&2
    exit 1
    ;;
  esac
done
echo "the task is still working" >&2
exit 1
