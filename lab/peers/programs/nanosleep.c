// Sleeps by clock_nanosleep(2) to an absolute time, with the timer slack that
// is given in ns. Each line of input, "COUNT REQUEST_NS", is answered by the
// CPU time in ns and the lateness of each wait in ns.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <time.h>

static long long read_clock(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static long long sleep_for(long long request)
{
	long long deadline = read_clock(CLOCK_MONOTONIC) + request;
	struct timespec at = { deadline / 1000000000LL, deadline % 1000000000LL };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return read_clock(CLOCK_MONOTONIC) - deadline;
}

int main(int argc, char **argv)
{
	int count;
	long long request;

	if (argc != 2)
		return 2;
#ifdef __linux__
	if (prctl(PR_SET_TIMERSLACK, strtoul(argv[1], NULL, 10), 0, 0, 0))
		return 1;
#endif
	while (scanf("%d %lld", &count, &request) == 2) {
		long long *late = malloc((count + 1) * sizeof *late);
		if (!late)
			return 1;
		sleep_for(request); // does not count
		long long cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
		for (int i = 0; i < count; i++)
			late[i] = sleep_for(request);
		printf("%lld", read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		for (int i = 0; i < count; i++)
			printf(" %lld", late[i]);
		printf("\n");
		fflush(stdout);
		free(late);
	}
	return 0;
}
