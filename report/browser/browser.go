// Package browser opens the report's pages in a headless Chromium: for the tests, and for the pictures in docs.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// names are those that Chromium goes by, the one of Debian first.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// ErrNone says that no browser is installed.
var ErrNone = errors.New("no chromium, chromium-browser or google-chrome in PATH: apt-get install chromium")

// Start starts a browser that ends with the context returned, of which chromedp.NewContext makes tabs. It finds no host
// of the network; it has no sandbox, so that root can start it too, and is to open nothing but our own files.
func Start(parent context.Context) (context.Context, context.CancelFunc, error) {
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))
		allocator, stop := chromedp.NewExecAllocator(parent, options...)
		ctx, cancel := chromedp.NewContext(allocator)
		end := func() { cancel(); stop() }
		if err := chromedp.Do(ctx); err != nil {
			end()
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		return ctx, end, nil
	}
	return nil, nil, ErrNone
}

// View is how a page is looked at: the width and height of the window in CSS pixels, below 500 that of a phone, and
// the reader's theme.
type View struct {
	Width, Height int64
	Dark          bool
}

// Look changes how the open page is looked at.
func Look(view View) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		theme := "light"
		if view.Dark {
			theme = "dark"
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: theme},
				{Name: "prefers-reduced-motion", Value: "reduce"}, // what is scrolled to is there at once
			},
		})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: view.Width, Height: view.Height, DeviceScaleFactor: 1, Mobile: view.Width < 500,
		})
		return err
	})
}

// Open opens a file, at a fragment unless that is empty.
func Open(file, fragment string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		address := url.URL{Scheme: "file", Path: path, Fragment: fragment}
		_, err = chromedp.Navigate(address.String())(ctx, t)
		return err
	})
}
