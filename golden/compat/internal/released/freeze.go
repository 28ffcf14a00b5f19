package released

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	versionName = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	generate    = regexp.MustCompile(`\n+//go:generate .*\n`)
)

// Freeze copies the sample to the directory of a version, without the lines that would generate it again, and lists the
// version. If another version wrote the same, it lists that one's directory. The output of a version that the changelog
// has released is never replaced. Freeze returns a sentence about its work.
func Freeze(compat, changelog, version string) (string, error) {
	if !versionName.MatchString(version) {
		return "", fmt.Errorf("%q is not a version such as v0.1.0", version)
	}
	versions, err := Versions(compat)
	if err != nil {
		return "", err
	}
	known := func(v Version) bool { return v.Name == version }
	if slices.ContainsFunc(versions, known) && slices.Contains(InChangelog(changelog), version) {
		return "", fmt.Errorf("%s is released: what it wrote stays as it is", version)
	}
	versions = slices.DeleteFunc(versions, known)
	sample, err := Files(filepath.Join(compat, Next))
	if err != nil {
		return "", err
	}
	for _, v := range versions {
		old, err := Files(filepath.Join(compat, v.Dir))
		if err != nil {
			return "", err
		}
		if maps.EqualFunc(old, moved(sample, v.Dir), bytes.Equal) {
			v.Name = version
			return fmt.Sprintf("%s writes what is in %s; it is listed, nothing was copied", version, v.Dir), write(compat, append(versions, v))
		}
	}
	dir := strings.ReplaceAll(version, ".", "_")
	files := moved(sample, dir)
	if err := os.RemoveAll(filepath.Join(compat, dir)); err != nil {
		return "", err
	}
	for name, text := range files {
		path := filepath.Join(compat, dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return "", err
		}
	}
	err = write(compat, append(versions, Version{version, dir, Hash(files)}))
	return fmt.Sprintf("%s is kept in %s, %d files", version, dir, len(files)), err
}

// moved returns the sample as it stands in another directory. The sample's tests stay behind: they run on every version.
func moved(sample map[string][]byte, dir string) map[string][]byte {
	files := map[string][]byte{}
	for name, text := range sample {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text = bytes.ReplaceAll(text, []byte("/golden/compat/"+Next+"/"), []byte("/golden/compat/"+dir+"/"))
		files[name] = generate.ReplaceAll(text, []byte("\n"))
	}
	return files
}
