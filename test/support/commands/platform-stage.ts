/** Commands that ask the platform, run as a person would: words in, lines and a code out. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { serve } from '../http/test-server.ts';
import { calling } from './mirrored-contacts.ts';

export const KEY = 'key_live_1234567890';

export interface Asked {
  line: string;
  headers: Record<string, unknown>;
  body: unknown;
}

interface Reply {
  status?: number;
  body: unknown;
}

/** Answers by `METHOD /path`, without the query; anything else as the platform would, 404. */
export async function platformOf(replies: Record<string, Reply>) {
  const asked: Asked[] = [];
  const url = await serve(({ method, url: path, headers, text }, response) => {
    const line = `${method} ${path?.split('?')[0]}`;
    asked.push({ line, headers, body: text === '' ? undefined : JSON.parse(text) });
    const { status = 200, body } = replies[line] ?? { status: 404, body: { message: 'Not found' } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return { url, asked };
}

/** A mirror of templates only, each file with its fields, on the platform at `url`. */
export function mirrorOn(url: string, templates: Record<string, object> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-reach-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'templates'));
  for (const [key, fields] of Object.entries({ welcome: { subject: 'Hi' }, ...templates })) {
    writeFileSync(join(folder, `templates/${key}.json`), JSON.stringify(fields));
  }
  const config = {
    mirror: 'acme',
    snapshot: './acme.sqlite',
    platform: { url, apiKey: KEY, timeoutMs: 10_000 },
    templates: { source: { type: 'directory', path: './templates' } },
  };
  const file = join(folder, 'mirror.yaml');
  writeFileSync(file, JSON.stringify(config));
  return async (...argv: string[]) => call(argv, file);
}

/** Words that begin with NAME= are the environment's. */
async function call(argv: readonly string[], file: string) {
  const env = Object.fromEntries(
    argv.filter((word) => /^[A-Z_]+=/.test(word)).map((word) => word.split(/=(.*)/s)),
  );
  const words = argv.filter((word) => !/^[A-Z_]+=/.test(word));
  const { code, out, err } = await calling([...words, '-c', file], { env });
  return { code, out: out === '' ? [] : out.split('\n'), err };
}
