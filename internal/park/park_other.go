//go:build !linux

package park

import "time"

func wake(now, deadline int64) { time.Sleep(time.Duration(deadline - now)) }

func mark(now, deadline int64) {}

func share(now, soft, hard int64) int64 { return roundest(soft, hard) }

func runtimeTimerAlone() bool { return true }
