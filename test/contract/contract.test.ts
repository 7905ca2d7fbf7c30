import { describe, expect, test } from 'vitest';
import { apiKeys } from './api-keys.ts';
import { ask, Nothing, prove } from './ask.ts';
import { contacts } from './contacts.ts';
import { domains } from './domains.ts';
import { enrolment } from './enrolment.ts';
import { everywhere, organizations } from './everywhere.ts';
import { isReading, type Sections } from './sentence.ts';
import { templates } from './templates.ts';
import { KEY, serveWorld } from './world.ts';

const all: Sections = {
  ...contacts,
  ...enrolment,
  ...templates,
  ...domains,
  ...apiKeys,
  ...everywhere,
  ...organizations,
};

describe('the emulator', () => {
  shown(all, 'for each sentence its request');
});

function shown(sections: Sections, title: string) {
  describe.each(Object.entries(sections))(`${title}: %s`, (_, sentences) => {
    test.each(sentences.map((sentence) => [sentence.says, sentence] as const))(
      '%s',
      async (_says, sentence) => {
        const { needs } = sentence;
        const url = await serveWorld(typeof needs === 'object' ? needs.limits : undefined);
        await prove(sentence, { url, key: KEY, strict: true });
      },
    );
  });
}

/** Read-only, against a platform with real people on it. */
const { PLATFORM_URL: url = '', PLATFORM_API_KEY: key = '' } = process.env;
describe.skipIf(url === '' || key === '')('the platform of PLATFORM_URL', () => {
  const readable = Object.entries(all).flatMap(([section, sentences]) =>
    sentences.filter(isReading).map((one) => [`${section}: ${one.says}`, one] as const),
  );
  test.for(readable)('%s', async ([, sentence], { skip }) => {
    try {
      await prove(sentence, { url, key, strict: false });
    } catch (error) {
      if (error instanceof Nothing) skip(error.message);
      throw error;
    }
  });
});

test('only what reads is asked of real platforms', async () => {
  const readable = Object.values(all).flat().filter(isReading);
  expect(readable.length).toBeGreaterThan(20);
  expect(readable.filter((one) => !one.ask.startsWith('GET '))).toEqual([]);
});

test('an expectation that does not hold is found', async () => {
  const to = { url: await serveWorld(), key: KEY, strict: true };
  const sentence = { says: '', ask: 'GET /api/contacts/list', status: 200 };
  await expect(prove({ ...sentence, status: 201 }, to)).rejects.toThrow();
  await expect(prove({ ...sentence, answer: { object: 'contact' } }, to)).rejects.toThrow();
  await expect(prove({ ...sentence, has: { total: 'x' } }, to)).rejects.toThrow();
  await expect(prove({ ...sentence, lacks: ['event'] }, to)).rejects.toThrow();
  await expect(prove({ ...sentence, sends: { 'retry-after': '1' } }, to)).rejects.toThrow();
  expect((await ask(sentence, to)).status).toBe(200);
});
