package console_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
)

func TestShots(t *testing.T) {
	dir := os.Getenv("SHOTS")
	if dir == "" {
		t.Skip("no SHOTS")
	}
	d := open(t, console.Options{Actions: true, Reveal: true})
	bob := alice
	bob.Principal = "bob"
	for i := range 20 {
		d.finish <- struct{}{}
		id := d.start(bob, "render", fmt.Sprintf(`{"file":"clip%d.mp4"}`, i))
		d.awaitState(bob, id, isDone)
	}
	for _, c := range []mcptask.Caller{alice, bob} {
		d.awaitState(c, d.start(c, "render", `{"file":"a.mp4"}`), reports)
		d.awaitState(c, d.start(c, "ship", `{}`), asks)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	defer free()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	for name, below := range map[string]string{"overview": "", "tasks": "tasks", "task": d.pageOf("render"), "ask": d.pageOf("ship")} {
		for _, width := range []int64{360, 1280} {
			for _, theme := range []string{"light", "dark"} {
				if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900), inTheme(theme),
					chromedp.Navigate(d.url+below), chromedp.Sleep(1500*time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				data, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(fmt.Sprintf("%s/%s-%d-%s.png", dir, name, width, theme), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func inTheme(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return err
	})
}
