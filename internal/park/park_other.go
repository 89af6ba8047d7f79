//go:build !linux

package park

import "time"

func wake(now, deadline, end int64) { time.Sleep(time.Duration(deadline - now)) }

func mark(now, deadline int64) {}

func share(now, soft, hard int64) (target int64, ok bool) { return roundest(soft, hard) }

func runtimeTimerAlone() bool { return true }
