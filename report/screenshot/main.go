// Command screenshot takes the pictures of a report that stand in docs: go generate ./docs.
//
//	screenshot REPORT FOLDER
//
// It writes report.png, the first screen, report-dark.png, the charts in the dark theme, and report-phone.png, the
// first screen of a phone.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"

	"deduplab/report/browser"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screenshot REPORT FOLDER")
		os.Exit(2)
	}
	if err := take(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func take(report, folder string) error {
	ctx, end, err := browser.Start(context.Background())
	if err != nil {
		return err
	}
	defer end()
	for _, picture := range []struct {
		name     string
		view     browser.View
		fragment string
	}{
		{"report.png", browser.View{Width: 1280, Height: 800}, ""},
		{"report-dark.png", browser.View{Width: 1280, Height: 800, Dark: true}, "charts"},
		{"report-phone.png", browser.View{Width: 390, Height: 844}, ""},
	} {
		if err := chromedp.Do(ctx, browser.Look(picture.view), browser.Open(report, picture.fragment)); err != nil {
			return fmt.Errorf("%s: %w", picture.name, err)
		}
		image, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return fmt.Errorf("%s: %w", picture.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, picture.name), image, 0o644); err != nil {
			return err
		}
	}
	return nil
}
