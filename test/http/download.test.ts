import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { download } from '../../src/http/download.ts';
import { serve } from '../support/http/test-server.ts';

test('a file is whole though its sender hangs up before a slow reader has read it', async () => {
  const content = randomBytes(1_200_000);
  const url = await serve((_, response) => {
    const { socket } = response;
    response.writeHead(200, { 'content-length': String(content.length) });
    response.end(content, () => setTimeout(() => socket?.destroySoon(), 50));
  });
  const request = { url, headers: {}, timeoutMs: 30_000 };
  const { body, close } = await download(request, new AbortController().signal);
  const chunks: Buffer[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
    await pause(60);
  }
  await close();
  expect(Buffer.concat(chunks).equals(content)).toBe(true);
});
