/** HubSpot's signature, version 3, by the examples that its own clients are tested with. */
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { verify } from '../../../src/worker/server/webhook-signature.ts';

const secret = 'yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy';
const text = "{'example_field':'example_value'}";

const judged = (
  timestamp: string,
  signature: string,
  url = 'https://www.example.com/webhook_uri',
) =>
  verify(
    { format: 'hubspot', secret },
    {
      method: 'POST',
      url,
      headers: { 'x-hubspot-request-timestamp': timestamp, 'x-hubspot-signature-v3': signature },
      body: Buffer.from(text),
    },
    Number(timestamp) + 1,
  );

describe("HubSpot's signature", () => {
  test.each([
    ['15000000', 'HPW73RUtKmcYoEDADG0s6MmGFWUzWJKAW07r8RDgcQw='],
    ['1693657560000', 'K36dawei4A+QBNolUOqo7s91KQDWQ5MXZ/QufNYuk/Y='],
  ])('matches the known example at %s', (timestamp, signature) => {
    expect(judged(timestamp, signature)).toEqual({ delivery: signature });
    expect(judged(`${timestamp}1`, signature)).toEqual({ refused: 'forged' });
    const other = signature.replace(/^./, 'A');
    expect(judged(timestamp, other)).toEqual({ refused: 'forged' });
  });

  // The characters that the documentation lists are signed as themselves, and no others.
  test('covers the address with some characters as they are', () => {
    const called = 'https://a.b/%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B%3b?x=%20%26%3D%2B%25';
    const signed = "https://a.b/:/?@!$'()*,;;?x=%20%26%3D%2B%25";
    const signature = createHmac('sha256', secret)
      .update(`POST${signed}${text}15000000`)
      .digest('base64');
    expect(judged('15000000', signature, called)).toEqual({ delivery: signature });
    expect(judged('15000000', signature, called.replace('%20', ' '))).toEqual({
      refused: 'forged',
    });
  });
});
