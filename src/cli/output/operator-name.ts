/** Names who gives a command, for what is kept of their decision. */
import { hostname, userInfo } from 'node:os';

/** Returns the user and the host of this process: `anna on mail-1`. */
export function operatorName(): string {
  return `${userName()} on ${hostname()}`;
}

/** Returns the user's name, or number in a container whose user has none. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
