// Sleeps by clock_nanosleep(2) with a timer slack of 1 ns, and prints how late
// each sleep was in ns, then the CPU time of the process in ns.
//
//	nanosleep PERIOD_NS COUNT
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

static long long now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static long long cpu(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000LL + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000LL;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	long long period = atoll(argv[1]);
	int n = atoi(argv[2]);
	long long *late = malloc(n * sizeof *late);
	if (!late || prctl(PR_SET_TIMERSLACK, 1))
		return 1;
	long long before = cpu();
	for (int i = 0; i < n; i++) {
		long long deadline = now() + period;
		struct timespec at = { deadline / 1000000000LL, deadline % 1000000000LL };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
			;
		late[i] = now() - deadline;
	}
	long long used = cpu() - before;
	for (int i = 0; i < n; i++)
		printf("%lld\n", late[i]);
	printf("%lld\n", used);
	return 0;
}
