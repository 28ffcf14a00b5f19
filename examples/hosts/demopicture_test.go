//go:build long && unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var moving = flag.String("moving", "", "write the moving picture of TestDemoPicture into this `file`")

// The moving picture has a frame for each change of the recording. Of a screen on which only the spinner and the clock move,
// it keeps the beginning and the end.
const (
	beginning = 1.5 // seconds
	ending    = 1.5
)

// moves matches the text that moves on a screen on which nothing happens: the spinner and the
// clock.
var moves = regexp.MustCompile(`(?m)^[\x{2800}-\x{28ff}]|[0-9:]+s?$`)

// playerPage plays a recording.
const playerPage = `<!doctype html><link rel="stylesheet" href="/bundle/asciinema-player.css">
<style>body { margin: 0; background: #121314 }</style><div id="player"></div>
<script src="/bundle/asciinema-player.min.js"></script><script>
const player = AsciinemaPlayer.create('/recording', document.getElementById('player'),
  {controls: false, fit: false, cursorMode: 'steady', terminalFontSize: '15px', theme: 'asciinema', preload: true,
    idleTimeLimit: 1e6})
async function size() {
  await player.play()
  await player.pause()
  await show(0) // only then the terminal has the size of the recording
  const {width, height} = document.querySelector('.ap-player').getBoundingClientRect()
  return [Math.ceil(width), Math.ceil(height)]
}
async function show(time) {
  await player.seek(time)
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
  return [...document.querySelectorAll('.ap-line')].map(line => line.textContent.trimEnd())
}
</script>`

// TestDemoPicture plays the recording of the demo, and checks its end. With -moving it makes the picture of the README.
func TestDemoPicture(t *testing.T) {
	findPackages(t)
	cast, err := os.ReadFile(filepath.Join("..", "..", "docs", "images", "pipeline.cast"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/bundle/", http.FileServer(http.Dir(filepath.Join(modules, "asciinema-player", "dist"))))
	mux.HandleFunc("/recording", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(cast) })
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, playerPage) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	tab := chromium.open(t)
	if err := chromedp.Do(tab, chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	size := evaluate[[2]int64](tab, t, "size()")
	if err := chromedp.Do(tab, chromedp.EmulateViewport(size[0], size[1])); err != nil {
		t.Fatal(err)
	}
	show := func(at float64) string {
		return strings.Join(evaluate[[]string](tab, t, fmt.Sprintf("show(%f)", at)), "\n")
	}
	times := readTimes(t, cast)
	screen := show(times[len(times)-1])
	for _, want := range []string{"Killed process ", "Ship api to production?", " s after its start it goes on at stage test (2/4).", "The task is completed: 4 stages"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is missing at the end of the recording:\n%s", want, screen)
		}
	}
	if *moving == "" {
		return
	}
	var frames []image.Image
	var delays []int // in hundredths of a second
	for _, shown := range cutWaiting(times, show) {
		show(shown.at)
		shot, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		frame, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		frames, delays = append(frames, frame), append(delays, int(100*shown.length+0.5))
	}
	delays[0] = 150 // the command
	delays[len(delays)-1] = 500
	reduced := reduce(frames)
	moved := slices.Clone(reduced)
	for i := 1; i < len(reduced); i++ { // a frame has only the part that changes
		moved[i], _ = reduced[i].SubImage(difference(reduced[i-1], reduced[i])).(*image.Paletted)
	}
	var out bytes.Buffer
	if err := gif.EncodeAll(&out, &gif.GIF{Image: moved, Delay: delays}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*moving, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readTimes returns when the recording changes. Of changes that are less than two frames of a browser apart, it returns the
// last.
func readTimes(t *testing.T, cast []byte) (times []float64) {
	t.Helper()
	for line := range bytes.Lines(cast[bytes.IndexByte(cast, '\n')+1:]) {
		var at float64
		if err := json.Unmarshal(line, &[]any{&at}); err != nil {
			t.Fatal(err)
		}
		at += 0.001 // the player shows the changes before a time
		if len(times) > 1 && at-times[len(times)-1] < 0.03 {
			times = times[:len(times)-1]
		}
		times = append(times, at)
	}
	return times
}

// interval is how long the picture shows the screen of the recording at a time.
type interval struct{ at, length float64 }

// cutWaiting returns the intervals of a recording that the picture shows, from the times of its
// changes.
func cutWaiting(times []float64, show func(at float64) string) (shown []interval) {
	screens := make([]string, len(times))
	for i, at := range times {
		screens[i] = moves.ReplaceAllString(show(at), "")
	}
	for first := 0; first < len(times)-1; {
		next := first + 1
		for next < len(times)-1 && screens[next] == screens[first] {
			next++
		}
		for i := first; i < next; i++ {
			cut := min(times[i+1], times[next]-ending) - max(times[i], times[first]+beginning)
			if length := times[i+1] - times[i] - max(cut, 0); length > 0 {
				shown = append(shown, interval{times[i], length})
			}
		}
		first = next
	}
	return append(shown, interval{times[len(times)-1], 0})
}

// evaluate returns the value of a promise of the page.
func evaluate[T any](tab context.Context, t *testing.T, script string) T {
	t.Helper()
	value, err := chromedp.Run(tab, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return value
}

// reduce gives the pictures the colors that they have most. It does not tell colors apart that a person hardly can: the
// edges of letters have hundreds.
func reduce(pictures []image.Image) []*image.Paletted {
	count := map[color.RGBA]int{}
	each := func(picture image.Image, do func(x, y int, c color.RGBA)) {
		for y := range picture.Bounds().Dy() {
			for x := range picture.Bounds().Dx() {
				c, _ := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
				do(x, y, color.RGBA{R: c.R | 7, G: c.G | 7, B: c.B | 7, A: c.A})
			}
		}
	}
	for _, picture := range pictures {
		each(picture, func(_, _ int, c color.RGBA) { count[c]++ })
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range most[:min(len(most), 256)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	var reduced []*image.Paletted
	for _, picture := range pictures {
		p := image.NewPaletted(picture.Bounds(), palette)
		each(picture, func(x, y int, c color.RGBA) {
			index, ok := nearest[c]
			if !ok {
				index = uint8(palette.Index(c)) //nolint:gosec // of at most 256
				nearest[c] = index
			}
			p.SetColorIndex(x, y, index)
		})
		reduced = append(reduced, p)
	}
	return reduced
}

// difference is the rectangle in which pictures differ, and at least one pixel.
func difference(a, b *image.Paletted) image.Rectangle {
	differ := image.Rectangle{}
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			if a.ColorIndexAt(x, y) != b.ColorIndexAt(x, y) {
				differ = differ.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if differ.Empty() {
		return image.Rect(0, 0, 1, 1)
	}
	return differ
}
