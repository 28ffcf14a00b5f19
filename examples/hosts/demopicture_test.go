//go:build long && unix

package main

import (
	"bytes"
	"context"
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
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var moving = flag.String("moving", "", "write the moving picture of TestDemoPicture into this `file`")

// The moving picture has a frame for each step of the recording. Waiting is cut.
const (
	step    = 0.25 // seconds
	longest = 12   // how many steps a row may change alone: then the person has seen that it moves
)

// playerPage plays a recording. It leaves the cursor out, which blinks by itself.
const playerPage = `<!doctype html><link rel="stylesheet" href="/bundle/asciinema-player.css">
<style>body { margin: 0; background: #121314 } .ap-cursor { visibility: hidden }</style><div id="player"></div>
<script src="/bundle/asciinema-player.min.js"></script><script>
const player = AsciinemaPlayer.create('/recording', document.getElementById('player'),
  {controls: false, fit: false, terminalFontSize: '13px', theme: 'asciinema', preload: true})
async function loaded() {
  await player.play()
  await player.pause()
  return await player.getDuration() + 1 // what is written at its very end too
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
	if err := chromedp.Do(tab, chromedp.EmulateViewport(676, 815), chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	length := evaluate[float64](tab, t, "loaded()")
	if screen := evaluate[[]string](tab, t, fmt.Sprintf("show(%f)", length)); !strings.Contains(strings.Join(screen, "\n"), "2026-07-28: a part of the task's state") {
		t.Errorf("the recording ends with:\n%s", strings.Join(screen, "\n"))
	}
	if *moving == "" {
		return
	}
	var frames []image.Image
	var delays []int // in hundredths of a second
	former, same := "", 0
	for time := 0.0; time <= length; time += step {
		screen := evaluate[[]string](tab, t, fmt.Sprintf("show(%f)", time))
		for len(screen) > 1 && screen[len(screen)-1] == "" {
			screen = screen[:len(screen)-1]
		}
		if above := strings.Join(screen[:len(screen)-1], "\n"); above != former {
			former, same = above, 0
		}
		if same++; same > longest {
			continue
		}
		shot, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		frame, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		frames, delays = append(frames, frame), append(delays, step*100)
	}
	delays[len(delays)-1] = 500
	reduced := reduce(frames)
	moved := slices.Clone(reduced)
	for i := 1; i < len(reduced); i++ { // a frame has what is new in it
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

// evaluate returns what a promise of the page becomes.
func evaluate[T any](tab context.Context, t *testing.T, script string) T {
	t.Helper()
	value, err := chromedp.Run(tab, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return value
}

// reduce gives the pictures the colors that they have most.
func reduce(pictures []image.Image) []*image.Paletted {
	count := map[color.RGBA]int{}
	each := func(picture image.Image, do func(x, y int, c color.RGBA)) {
		for y := range picture.Bounds().Dy() {
			for x := range picture.Bounds().Dx() {
				c, _ := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
				do(x, y, c)
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
