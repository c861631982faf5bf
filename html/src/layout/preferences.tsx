import { Languages, Monitor, Moon, Sun } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { type Language, LANGUAGES, setLanguage } from '@/i18n';
import { Button } from '@/ui/button';
import { Menu, MenuRadio } from '@/ui/menu';
import { THEMES, useTheme } from './theme';

// each in its own language
const NAMES: Record<Language, string> = { 'en': 'English', 'zh-CN': '简体中文' };
const ICONS = { system: Monitor, light: Sun, dark: Moon };

export function LanguageMenu() {
  const { t, i18n } = useTranslation();

  return (
    <Menu trigger={(
      <Button look="quiet" size="sm" aria-label={t('language')} icon={<Languages size={16} aria-hidden />} />
    )}
    >
      <MenuRadio value={i18n.language as Language} onChange={setLanguage}
        options={LANGUAGES.map((l) => ({ value: l, label: <span lang={l}>{NAMES[l]}</span> }))}
      />
    </Menu>
  );
}

export function ThemeMenu() {
  const { t } = useTranslation();
  const [theme, setTheme] = useTheme();
  const Icon = ICONS[theme];

  return (
    <Menu trigger={<Button look="quiet" size="sm" aria-label={t('theme.name')} icon={<Icon size={16} aria-hidden />} />}>
      <MenuRadio value={theme} onChange={setTheme}
        options={THEMES.map((v) => ({ value: v, label: t(`theme.${v}`) }))}
      />
    </Menu>
  );
}
