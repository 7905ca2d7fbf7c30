/**
 * Returns whether requests to an address stay on this machine. False for a text that is no address.
 */
export function isLoopback(text: string): boolean {
  const host = URL.parse(text)?.hostname ?? '';
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
