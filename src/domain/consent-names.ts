/**
 * Recognizes columns that are named like a consent to mail. This decides nothing about a consent:
 * it only says which proposal `init` makes first for a column that is not used.
 */
import { plain } from './name-terms.ts';

const consentNames: Readonly<Record<string, string>> = {
  English:
    'opt(?:ed)? ?in|consent|permission|permit|allow|agree|accept|subscrib|newsletter|mail|contact|marketing|receive|wants|send|confirm|doi|gdpr',
  German: 'einwillig|zustimm|erlaub|genehmig|einverstand|abonn|werb|dsgvo|rundbrief|verteiler|darf',
  Dutch: 'toestemming|akkoord|nieuwsbrief|aangemeld',
  Nordic: 'samty|nyhedsbrev|nyhetsbrev|tilmeld|pameld|anmald|godkan|godkend|prenumer|epost|utskick',
  Finnish: 'suostumus|lupa|uutiskirje|tilaa|sahkoposti|markkinoin',
  Romance:
    'consens|autoris|autoriz|accor|acepta|aceita|accetta|inscri|iscri|suscri|subscri|abonn|boletin|courriel|correo|acord|rgpd|lgpd',
  'West and South Slavic': 'zgod|souhlas|suhlas|odber|subskry|zapis|rodo',
  Hungarian: 'hozzajarul|feliratkoz|hirlevel',
  Turkish: 'izin|onay|riza|abone|bulten|kvkk',
  'Russian, Ukrainian and Greek':
    'соглас|подпис|рассыл|згод|підпис|розсил|συγκαταθεσ|συναιν|εγγραφ',
  'East Asian': '同意|許可|許諾|購読|メルマガ|配信|订阅|訂閱|许可|동의|수신|구독',
};
const consent = new RegExp(Object.values(consentNames).join('|'), 'u');

/** Returns whether a column is named like a consent. */
export function isNamedLikeConsent(name: string): boolean {
  return consent.test(plain(name));
}
