/** How far it is, on one line of a terminal that is written over and over; nowhere else. */
interface Terminal {
  isTTY?: boolean;
  write(text: string): unknown;
}

export interface Progress {
  seed(): void;
  failure(): void;
  /** Makes room for a line that stays. */
  clear(): void;
}

const everyMs = 200;

/** `now`: milliseconds. */
export function createProgress(terminal: Terminal, of: number, now: () => number): Progress {
  const beganAt = now();
  let shownAt = beganAt;
  let done = 0;
  let failing = 0;

  return {
    seed() {
      done += 1;
      if (!terminal.isTTY || (done < of && now() - shownAt < everyMs)) return;
      shownAt = now();
      const rate = Math.round((done * 1000) / Math.max(1, shownAt - beganAt));
      terminal.write(`\r${done} of ${of} seeds, ${rate} a second, ${failing} fail\u001B[K`);
    },
    failure: () => void (failing += 1),
    clear() {
      if (terminal.isTTY) terminal.write('\r\u001B[K');
    },
  };
}
