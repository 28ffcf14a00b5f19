//go:build long

package scaffold

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.yaml.in/yaml/v4"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// operators let the server choose a port for the operator's page.
var operators = []string{"-operators", "127.0.0.1:0"}

// TestFull runs the template full with the settings that it offers.
func TestFull(t *testing.T) {
	t.Parallel()
	p := writeProgram(t, "full")
	p.buildImage()
	for name, test := range map[string]func(*program){
		"workflow": testWorkflow, "settings": testSettings, "anyone": testAnyone,
		"token": testToken, "oauth": testOAuth, "stdio": testStdio, "postgres": testPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			mine := *p
			mine.t, mine.environment = t, slices.Clip(p.environment)
			test(&mine)
		})
	}
}

// buildImage builds the server by the line of the Dockerfile, and compares what the Dockerfile and compose.yaml tell the
// server with its flags. The other tests run this build.
func (p *program) buildImage() {
	file := p.readFile("Dockerfile")
	_, build, found := strings.Cut(file, "\nRUN CGO_ENABLED=0 ")
	build, _, _ = strings.Cut(build, "\n")
	if !found || !strings.Contains(build, " -o /server ") {
		p.t.Fatalf("no line builds /server:\n%s", file)
	}
	p.environment = append(p.environment, "CGO_ENABLED=0")
	p.run("sh", "-c", strings.Replace(build, "/server", filepath.ToSlash(p.binary), 1))

	lines := map[string][]string{}
	for line := range strings.Lines(file) {
		for _, name := range []string{"ENTRYPOINT ", "CMD "} {
			if _, list, ok := strings.Cut(line, name); ok {
				var words []string
				if err := json.Unmarshal([]byte(list), &words); err != nil || words[0] != "/server" {
					p.t.Errorf("%s: %v", line, err)
				}
				lines[name] = words[1:]
			}
		}
	}
	var compose struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal([]byte(p.readFile("compose.yaml")), &compose); err != nil {
		p.t.Fatal(err)
	}
	server := compose.Services["server"]
	if !strings.HasPrefix(server.Environment["TASKS_TOKEN"], "${TASKS_TOKEN:?") {
		p.t.Errorf("compose.yaml does not ask for a token: %+v", server)
	}
	// The flags are those of the server: it complains of the missing token, and of the missing server.
	if code, said := p.exitCode(p.binary, append(lines["ENTRYPOINT "], server.Command...)...); code != 1 || !strings.Contains(said, "TASKS_DSN is empty") {
		p.t.Errorf("the server in the image ends with %d: %s", code, said)
	}
	if code, said := p.exitCode(p.binary, "-probe", "http://127.0.0.1:1/readyz"); code != 1 || lines["CMD "][0] != "-probe" {
		p.t.Errorf("the probe %q ends with %d: %s", lines["CMD "], code, said)
	}
}

// testWorkflow runs the commands of the workflow for GitHub, as for a pull request that changes nothing.
func testWorkflow(p *program) {
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal([]byte(p.readFile(".github/workflows/ci.yml")), &workflow); err != nil {
		p.t.Fatal(err)
	}
	if status := p.run("sh", "-c", "git init --quiet && git add --all && git status --porcelain"); strings.Contains(status, "bin/") || !strings.Contains(status, "mcptask_gen.go") {
		p.t.Errorf("git adds:\n%s", status)
	}
	p.run("git", "-c", "user.name=hello", "-c", "user.email=hello@example.com", "commit", "--quiet", "--message", "hello")
	p.run("git", "update-ref", "refs/remotes/origin/main", "HEAD")
	commands := 0
	for _, step := range workflow.Jobs["test"].Steps {
		if step.Run == "" {
			continue
		}
		commands++
		step.Run = strings.Replace(step.Run, " -race ", " ", 1) // it needs a C compiler, and minutes for the database's driver
		if code, said := p.exitCode("sh", "-c", "BASE=main; "+step.Run); code != 0 {
			p.t.Errorf("%s: %d: %s", step.Run, code, said)
		}
	}
	if commands != 6 {
		p.t.Errorf("the workflow has %d commands", commands)
	}
}

// testSettings meets settings that the server refuses.
func testSettings(p *program) {
	for _, c := range []struct{ flags, want string }{
		{"-http :0", "callers need authentication: set TASKS_TOKEN or -issuer"},
		{"-http=", "-http is empty"},
		{"-url https://tasks.example.com/mcp", "callers come from elsewhere and need authentication"},
		{"-url tasks.example.com", "flag -url: it is not the URL of a server"},
		{"-operators :0", "set TASKS_PAGE_PASSWORD"},
		{"-page-host ops.example.com", "set TASKS_PAGE_PASSWORD"},
		{"-postgres", "TASKS_DSN is empty"},
		{"-stdio false", "is not a flag"},
		{"-issuer https://login.example.com", "-jwks is missing"},
		{"-issuer https://login.example.com -jwks https://login.example.com/jwks.json", "-url is missing"},
		{"-audience tasks -url https://tasks.example.com/mcp", "-issuer is missing"},
		{"-scopes tasks", "-issuer is missing"},
	} {
		flags := append([]string{"-http", "127.0.0.1:0"}, operators...) // the last of a name counts
		if code, said := p.exitCode(p.binary, append(flags, strings.Fields(c.flags)...)...); code == 0 || !strings.Contains(said, c.want) {
			p.t.Errorf("%s: the server ends with %d: %s", c.flags, code, said)
		}
	}
}

// testAnyone starts the server without any setting but for its ports. An operator at the machine only looks.
func testAnyone(p *program) {
	s := p.serve("127.0.0.1:0", operators...)
	if got := p.mcptask(append([]string{"call", s.url}, publish...)...); got != published {
		p.t.Error(got)
	}
	base := strings.TrimSuffix(s.page, "/console/")
	for path, want := range map[string]string{
		"/console/tasks": "write_report", "/readyz": "ok", "/livez": "ok",
		"/metrics": `mcptask_tasks_ended_total{gen_ai_tool_name="write_report",mcptask_outcome="result"`,
	} {
		if status, got := p.get(base+path, ""); status != http.StatusOK || !strings.Contains(got, want) {
			p.t.Errorf("%s: HTTP %d: %s", path, status, got)
		}
	}
	p.run(p.binary, "-probe", base+"/readyz")
	// A task that runs as the server stops goes on at the next one.
	id := strings.TrimSpace(p.mcptask("call", "--detach", "--quiet", s.url, "write_report", "region=north"))
	s.stop()
	s = p.serve(s.address(), operators...)
	if got := p.mcptask("watch", s.url, id); !strings.Contains(got, "All is well in the north.") {
		p.t.Error(got)
	}
	s.stop()

	s = p.serve("127.0.0.1:0", "-operators", "")
	if s.page != "" {
		p.t.Errorf("without -operators, the page is at %s", s.page)
	}
	s.stop()
}

// testToken starts the server on all addresses, with a token, and a password for the page, which a proxy on the machine
// passes on.
func testToken(p *program) {
	p.environment = append(p.environment, "TASKS_TOKEN=sesame", "TASKS_PAGE_PASSWORD=rosebud")
	s := p.serve(":0", append(operators, "-page-host", "ops.example.com")...)
	s.url = strings.Replace(s.url, "[::]", "127.0.0.1", 1)
	if code, said := p.exitCode("go", "tool", "mcptask", "call", s.url, "list_regions"); code != 3 {
		p.t.Errorf("without a token, call ends with %d: %s", code, said)
	}
	if got := p.mcptask("call", "--token-env", "TASKS_TOKEN", s.url, "list_regions"); !strings.Contains(got, "north") {
		p.t.Error(got)
	}
	for password, want := range map[string]int{"": http.StatusUnauthorized, "sesame": http.StatusUnauthorized, "rosebud": http.StatusOK} {
		if status, got := p.get(s.page, password); status != want {
			p.t.Errorf("the page, with the password %q: HTTP %d: %s", password, status, got)
		}
	}
	for host, want := range map[string]int{"ops.example.com": http.StatusOK, "other.example": http.StatusForbidden} {
		if status, got := p.get(s.page, "rosebud", host); status != want {
			p.t.Errorf("the page, as %s: HTTP %d: %s", host, status, got)
		}
	}
	s.stop()
}

// testOAuth calls with a token of an authorization server.
func testOAuth(p *program) {
	const issuer, url = "https://login.example.com", "https://tasks.example.com/mcp"
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "k", "x": %q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	defer keys.Close()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: issuer, Audience: jwt.ClaimStrings{url}, Subject: "ada", ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
	})
	token.Header["kid"] = "k"
	signed, err := token.SignedString(private)
	if err != nil {
		p.t.Fatal(err)
	}
	p.environment = append(p.environment, "SIGNED_TOKEN="+signed)

	s := p.serve("127.0.0.1:0", append(operators, "-issuer", issuer, "-jwks", keys.URL, "-url", url)...)
	if status, got := p.get("http://"+s.address()+"/.well-known/oauth-protected-resource/mcp", ""); status != http.StatusOK || !strings.Contains(got, issuer) {
		p.t.Errorf("the metadata: HTTP %d: %s", status, got)
	}
	if status, got := p.get(s.url, ""); status != http.StatusUnauthorized {
		p.t.Errorf("without a token: HTTP %d: %s", status, got)
	}
	if got := p.mcptask("call", "--token-env", "SIGNED_TOKEN", s.url, "list_regions"); !strings.Contains(got, "north") {
		p.t.Error(got)
	}
	s.stop()
}

// testStdio calls the program as a host does.
func testStdio(p *program) {
	if got := p.mcptask("call", "--answer", "publish=decline", "--", p.binary, "-stdio", "-db", "other.db", "--", "write_report", "region=north", "publish=true"); !strings.Contains(got, `"published": false`) {
		p.t.Errorf("a report that the person declines to publish: %s", got)
	}
}

// testPostgres keeps a task in PostgreSQL while the server is down.
func testPostgres(p *program) {
	p.environment = append(p.environment, "TASKS_DSN="+peer.Database(p.t))
	flags := append(operators, "-postgres")
	s := p.serve("127.0.0.1:0", flags...)
	id := strings.TrimSpace(p.mcptask("call", "--detach", "--quiet", s.url, "write_report", "region=north"))
	s.stop()
	s = p.serve(s.address(), flags...)
	if got := p.mcptask("watch", s.url, id); !strings.Contains(got, "All is well in the north.") {
		p.t.Error(got)
	}
	s.stop()
}

// get returns what a URL answers. A password that is not empty is that of an operator. A host takes the place of the URL's.
func (p *program) get(url, password string, host ...string) (status int, body string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	if password != "" {
		request.SetBasicAuth("ada", password)
	}
	for _, name := range host {
		request.Host = name
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (p *program) readFile(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
