// Command lab simulates and compares ways of removing duplicates from a stream.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends what does not end by itself
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
