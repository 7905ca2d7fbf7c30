/** Names who gives a command, for what is kept of their decision. */
import { hostname, userInfo } from 'node:os';

/** Returns who gave the command: the user and the host, such as `anna on mail-1`. */
export function operatorName({ operator }: { operator?: string } = {}): string {
  return operator ?? `${userName()} on ${hostname()}`;
}

/** Returns the user's name, or number in a container whose user has none. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
