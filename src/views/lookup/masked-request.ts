/** Shows logged requests with the name of the person (#9cc428f416d4) in the place of an address. */
import type { LoggedRequest } from '../../store/request-log/read-log.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import type { Names } from './person-names.ts';

const anyAddress = /[^\s@‹›"'<>(){}[\],\\]{1,64}@[^\s@‹›"'<>(){}[\],\\]{1,255}/gu;

/** Returns the text with every address replaced by the name that `names` gives the person. */
export function maskedText(text: string, names: Names): string {
  return text.replace(anyAddress, (found) => {
    const address = found.replace(/[.,;:!?…]+$/, '');
    const key = contactKey(address);
    const name = names({ kind: 'contact', key });
    return name === key ? found : name + found.slice(address.length);
  });
}

/** Returns the request with every address replaced by the name that `names` gives the person. */
export function masked(one: LoggedRequest, names: Names): LoggedRequest {
  const name = (address: string): string => names({ kind: 'contact', key: contactKey(address) });
  const { person, path } = one;
  const mask = (text: string): string => {
    const known = person === null || person === '' ? text : text.replaceAll(person, name(person));
    return maskedText(known, names);
  };
  const [place = '', query] = path.split('?');
  const fields = [...new URLSearchParams(query)].map(([field, of]) => `${field}=${mask(of)}`);
  return {
    ...one,
    path: query === undefined ? path : `${place}?${fields.join('&')}`,
    person: person && name(person),
    request: one.request && mask(one.request),
    answer: one.answer && mask(one.answer),
    failure: one.failure && mask(one.failure),
  };
}
