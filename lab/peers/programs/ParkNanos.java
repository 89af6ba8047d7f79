import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;

/**
 * Sleeps by LockSupport.parkNanos, which may return at any time, and is called
 * again until the time is over. Each line of input, "COUNT REQUEST_NS", is
 * answered by the CPU time in ns, of the thread that waits, and the lateness of
 * each wait in ns.
 */
public class ParkNanos {
	static long park(long request) {
		long deadline = System.nanoTime() + request;
		for (long left = request; left > 0; left = deadline - System.nanoTime()) {
			LockSupport.parkNanos(left);
		}
		return System.nanoTime() - deadline;
	}

	public static void main(String[] args) throws IOException {
		ThreadMXBean threads = ManagementFactory.getThreadMXBean();
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			String[] numbers = line.trim().split(" ");
			int count = Integer.parseInt(numbers[0]);
			long request = Long.parseLong(numbers[1]);
			long[] late = new long[count];
			park(request); // does not count
			long before = threads.getCurrentThreadCpuTime();
			for (int i = 0; i < count; i++) {
				late[i] = park(request);
			}
			StringBuilder answer = new StringBuilder();
			answer.append(threads.getCurrentThreadCpuTime() - before);
			for (long l : late) {
				answer.append(' ').append(l);
			}
			System.out.println(answer);
			System.out.flush();
		}
	}
}
