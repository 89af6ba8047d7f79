//go:build !linux

package measure

import (
	"errors"
	"time"
)

var kernelMethods = absent("select", "poll", "epoll_pwait2", "nanosleep", "nanosleep:1ns",
	"clock_nanosleep", "clock_nanosleep:1ns", "timerfd")

func absent(names ...string) (methods []Method) {
	for _, name := range names {
		methods = append(methods, Method{name, Kernel, func(time.Duration) (waiter, error) {
			return waiter{}, errors.New("measured on Linux only")
		}})
	}
	return methods
}
