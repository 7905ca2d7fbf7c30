/** The platform's address: what is accepted, and the one spelling it is brought to. */
import { z } from 'zod';

/** Accepts what a request path can be appended to; gives it without a trailing slash. */
export const address = z
  .string()
  .superRefine((text, context) => {
    const message = complaint(text);
    if (message) context.addIssue({ code: 'custom', message });
  })
  .transform((text) => {
    const url = new URL(text);
    return url.origin + url.pathname.replace(/\/+$/, '');
  });

function complaint(text: string): string | undefined {
  const url = URL.parse(text.trim());
  if (!url || !/^https?:$/.test(url.protocol)) return 'is no web address → write https://HOST';
  if (url.username || url.password) return 'holds a user or password → move the key to apiKey';
  if (/[?#]/.test(text)) return 'holds a query or fragment → end it before the ? or #';
  return undefined;
}

/** Whether user and password can be read: a % that stands for itself is written %25. */
export function isReadable(text: string): boolean {
  const { username = '', password = '' } = URL.parse(text) ?? {};
  try {
    return [username, password].every((part) => decodeURIComponent(part) !== undefined);
  } catch {
    return false;
  }
}
