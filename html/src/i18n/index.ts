// Languages: that of the browser, else English; texts in one file per area and
// language, loaded when a page of the area opens.

import i18next, { type BackendModule, type FlatNamespace } from 'i18next';
import { initReactI18next } from 'react-i18next';
import { remember, remembered } from '@/lib/stored';

export const LANGUAGES = ['en', 'zh-CN'] as const;
export type Language = (typeof LANGUAGES)[number];

const files = import.meta.glob<Record<string, unknown>>('./*/*.json', { import: 'default' });

const backend: BackendModule = {
  type: 'backend',
  init() {},
  read(language, area, done) {
    const load = files[`./${language}/${area}.json`];

    if (!load) {
      done(new Error(`no ${language}/${area}.json`), null);
      return;
    }

    load().then((texts) => done(null, texts as never), (e: Error) => done(e, null));
  },
};

function wanted(): Language {
  const kept = remembered('lang');

  return LANGUAGES.find((l) => l === kept)
    ?? (navigator.languages.find((l) => /^(?:zh|en)\b/i.test(l))?.toLowerCase().startsWith('zh')
      ? 'zh-CN' : 'en');
}

const html = document.documentElement;

export const ready = i18next.use(backend).use(initReactI18next).init({
  lng: wanted(),
  supportedLngs: LANGUAGES,
  load: 'currentOnly',
  fallbackLng: false,
  ns: ['common'],
  defaultNS: 'common',
  partialBundledLanguages: true,
  interpolation: { escapeValue: false },
  react: { useSuspense: true },
});

i18next.on('languageChanged', (l) => { html.lang = l; });
html.lang = i18next.language;

/** The texts of areas, loaded before what shows them: texts that come late hide all that stands round them. */
export const texts = (...areas: FlatNamespace[]) => i18next.loadNamespaces(areas);

export const language = () => i18next.language as Language;

export function setLanguage(l: Language): void {
  remember('lang', l);
  void i18next.changeLanguage(l);
}
