//go:build !linux

package park

import "time"

func wake(now, deadline, end int64) (overslept bool) {
	time.Sleep(time.Duration(deadline - now))
	return false
}

func mark(now, deadline int64) {}

func unmark() {}

func share(now, soft, hard int64) (target int64, ok bool) { return roundest(soft, hard) }

func runtimeTimerAlone() bool { return true }
