import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultAt } from '../../src/sources/directory/directory-source.ts';

describe('the position where JSON ends', () => {
  const isJson = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };

  test('is none for JSON, and one for anything else', () => {
    const text = fc.oneof(
      fc.json().map((json) => JSON.stringify(JSON.parse(json), undefined, 2)),
      fc.string({ unit: fc.constantFrom(...'{}[],:"\\au10.-e \n', 'true', 'null') }),
    );
    fc.assert(
      fc.property(text, fc.nat(), (json, cut) => {
        const part = json.slice(0, cut % (json.length + 1));
        for (const sample of [json, part]) {
          const fault = faultAt(sample);
          if (isJson(sample)) expect(fault).toBe(sample.length);
          else {
            // What comes before is the beginning of some JSON: at most, a quote is still open.
            const before = faultAt(sample.slice(0, fault));
            expect(before === fault || sample[before] === '"').toBe(true);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ['{"a": x}', 6],
    ['{"a":1,}', 7],
    ['{"a":"x', 5],
    ['{"a":1 "b":2}', 7],
    ['[1]]', 3],
    ['{"a":[}', 6],
    ['["\\x"]', 2],
    ['["a\nb"]', 3],
    ['01', 1],
    ['[1,2', 4],
  ])('%j at %i', (text, offset) => {
    expect(faultAt(text)).toBe(offset);
  });

  test('is found in a long string', () => {
    const text = `["${'a\\n<p>'.repeat(200_000)}", x]`;
    expect(faultAt(text)).toBe(text.length - 2);
  });
});
