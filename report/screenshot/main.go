// Command screenshot takes the pictures of a report that stand in docs: go generate ./docs.
//
//	screenshot REPORT FOLDER
//
// It writes report.png (the first screen), and of the whole page report-page.png, report-dark.png and report-phone.png.
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
		name  string
		view  browser.View
		whole bool
	}{
		{"report.png", browser.View{Width: 1280, Height: 800}, false},
		{"report-page.png", browser.View{Width: 1280, Height: 800}, true},
		{"report-dark.png", browser.View{Width: 1280, Height: 800, Dark: true}, true},
		{"report-phone.png", browser.View{Width: 390, Height: 844}, true},
	} {
		if err := chromedp.Do(ctx, browser.Look(picture.view), browser.Open(report, "")); err != nil {
			return fmt.Errorf("%s: %w", picture.name, err)
		}
		shot := chromedp.CaptureScreenshot()
		if picture.whole {
			shot = chromedp.FullScreenshot(100)
		}
		image, err := chromedp.Run(ctx, shot)
		if err != nil {
			return fmt.Errorf("%s: %w", picture.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, picture.name), image, 0o644); err != nil {
			return err
		}
	}
	return nil
}
