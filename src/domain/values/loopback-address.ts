/** Whether nothing sent there leaves this machine. A text that is no address does not. */
export function isLoopback(text: string): boolean {
  const host = URL.parse(text)?.hostname ?? '';
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
