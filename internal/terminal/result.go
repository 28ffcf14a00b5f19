package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/indent"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// File is a part of a result that is not text: an image, a sound or a resource.
type File struct {
	// Name is a name for the file, without a directory: that of the resource, or the kind of the block.
	Name string
	// MediaType is the server's, such as image/png.
	MediaType string
	Data      []byte
}

// ReadResult returns the text of a result for a person, and the files in it. The text has the text blocks in order, the
// links, and the text of resources. Structured content takes the place of a text that is the same JSON, or that is
// missing, and is indented. The text is as the server sent it: see Printable.
func ReadResult(r *mcptask.Result) (text string, files []File) {
	if r == nil {
		return "", nil
	}
	var parts []string
	for _, content := range r.Content {
		part, file := readBlock(content)
		if part != "" {
			parts = append(parts, part)
		}
		if file != nil {
			files = append(files, *file)
		}
	}
	text = strings.Join(parts, "\n")
	if json.Valid(r.Structured) && (text == "" && len(files) == 0 || isSameJSON(text, r.Structured)) {
		text = string(indent.JSON(r.Structured))
	}
	return text, files
}

// readBlock reads a content block: its text, or its file.
func readBlock(content mcptask.Content) (text string, file *File) {
	var block struct {
		Type, Text, MimeType, URI, Name string
		Data                            []byte
		Resource                        struct {
			URI, MimeType, Text string
			Blob                []byte
		}
	}
	if err := json.Unmarshal(content, &block); err != nil {
		return string(content), nil
	}
	switch block.Type {
	case "text":
		return block.Text, nil
	case "image", "audio":
		return "", &File{block.Type + extensionOf(block.MimeType), block.MimeType, block.Data}
	case "resource_link":
		return strings.TrimPrefix(block.Name+": "+block.URI, ": "), nil
	case "resource":
		if block.Resource.Blob == nil {
			return block.Resource.Text, nil
		}
		return "", &File{baseName(block.Resource.URI, extensionOf(block.Resource.MimeType)), block.Resource.MimeType, block.Resource.Blob}
	}
	return string(content), nil
}

// maxCompared is how long a text may be that is compared with structured content. Decoded, it takes many times as much
// memory.
const maxCompared = 1 << 20

// isSameJSON reports whether a text is the same JSON value as another one. Long texts are not compared.
func isSameJSON(text string, other json.RawMessage) bool {
	var a, b any
	return max(len(text), len(other)) <= maxCompared && json.Unmarshal([]byte(text), &a) == nil && json.Unmarshal(other, &b) == nil && reflect.DeepEqual(a, b)
}

// extensions are the endings of files, by media type.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg",
	"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip", "text/plain": ".txt", "text/html": ".html",
}

// extensionOf returns the ending of a file of a media type.
func extensionOf(mediaType string) string {
	kind, _, _ := strings.Cut(mediaType, ";")
	if extension, ok := extensions[strings.ToLower(strings.TrimSpace(kind))]; ok {
		return extension
	}
	return ".bin"
}

// baseName returns the last part of a URI as the name of a file. If that is not a name, it returns
// "resource".
func baseName(uri, extension string) string {
	path, _, _ := strings.Cut(uri, "?")
	path, _, _ = strings.Cut(path, "#")
	name := path[strings.LastIndexAny(path, `/\:`)+1:]
	isPlain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-", r)
	}
	name = strings.Map(func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return '_'
	}, name)
	const most = 100
	name = strings.TrimLeft(name[:min(len(name), most)], ".")
	if name == "" {
		name = "resource"
	}
	if filepath.Ext(name) == "" {
		name += extension
	}
	return name
}

// Save writes a file into a directory, which must exist. If its name is taken, it gets a number. It returns the path. It
// replaces nothing.
func (f File) Save(directory string) (path string, err error) {
	extension := filepath.Ext(f.Name)
	stem := strings.TrimSuffix(f.Name, extension)
	const most = 10_000
	for n := 1; n <= most; n++ {
		path = filepath.Join(directory, f.Name)
		if n > 1 {
			path = filepath.Join(directory, fmt.Sprintf("%s-%d%s", stem, n, extension))
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the name has no directory
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = file.Write(f.Data)
		return path, errors.Join(err, file.Close())
	}
	return "", fmt.Errorf("%s: there are %d files of this name", path, most)
}
