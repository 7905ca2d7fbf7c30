/** The live updates of a page, as a browser receives them. */
import { onTestFinished } from 'vitest';
import { z } from 'zod';

/** A stream of live updates. */
export interface LiveStream {
  status: number;
  /** The newest text of each part of the page, by id. */
  parts: Map<string, string>;
  /** Whether the server has ended it. */
  hasEnded(): boolean;
  close(): void;
}

const parts = z.record(z.string(), z.string());

/** Opens the stream with a cookie; it ends with the test. */
export async function followLive(url: string, cookie: string): Promise<LiveStream> {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const answer = await fetch(url, {
    headers: { accept: 'text/event-stream', cookie },
    redirect: 'manual',
    signal: stop.signal,
  });
  const stream = { status: answer.status, parts: new Map<string, string>(), ended: false };
  const read = async (): Promise<void> => {
    let text = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const events = (text + chunk).split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1] ?? '{}';
        for (const [id, html] of Object.entries(parts.parse(JSON.parse(data)))) {
          stream.parts.set(id, html);
        }
      }
    }
  };
  const ended = (): void => void (stream.ended = true);
  void read().then(ended, ended);
  const { status, parts: shown } = stream;
  return { status, parts: shown, hasEnded: () => stream.ended, close: () => stop.abort() };
}

/** Returns the cookie that a request to sign in is answered with. */
export function cookieOf(answer: Response): string {
  return answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}
