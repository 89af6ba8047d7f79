// Sleeps by std::this_thread::sleep_for. Each line of input, "COUNT
// REQUEST_NS", is answered by the CPU time in ns and the lateness of each wait
// in ns.
#include <chrono>
#include <iostream>
#include <thread>
#include <time.h>
#include <vector>

using steady = std::chrono::steady_clock;

static long long cpu()
{
	timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static long long sleep_for(std::chrono::nanoseconds request)
{
	auto start = steady::now();
	std::this_thread::sleep_for(request);
	return std::chrono::nanoseconds(steady::now() - start - request).count();
}

int main()
{
	int count;
	long long ns;

	while (std::cin >> count >> ns) {
		std::chrono::nanoseconds request(ns);
		std::vector<long long> late(count);
		sleep_for(request); // does not count
		long long before = cpu();
		for (auto &l : late)
			l = sleep_for(request);
		std::cout << cpu() - before;
		for (auto l : late)
			std::cout << ' ' << l;
		std::cout << std::endl;
	}
}
