"""Words that speak of the answer itself, as in "Here is a summary of the passages:": with them nothing is claimed.

The lists are short on purpose. A word that could claim something about the world does not belong here: a sentence
that
has it is judged.
"""

from __future__ import annotations

import regex

from calibrate.backends.text.wordlists import words_of

# A number after one of these names a place: "(Passage 1)", "Step 2:".
LABELS = words_of(
    """
    passage passages source sources document documents doc docs text texts article articles section sections
    paragraph context excerpt excerpts reference references ref refs step option method part point question answer
    quelle quellen dokument dokumente absatz schritt punkt frage antwort texte étape extrait fuente fuentes
    documento documentos pasaje pasajes paso pregunta respuesta fonte fonti documenti passaggio passaggi passo
    domanda risposta fontes trecho trechos passagem passagens pergunta resposta bron bronnen stap vraag antwoord
    källa källor steg fråga svar источник источники шаг вопрос ответ отрывок مصدر المصدر خطوة سؤال إجابة مقطع
    המקור שאלה תשובה 출처 단계 질문 답변 स्रोत चरण प्रश्न उत्तर
    """
)

_WORDS = """
answers answering answered query response reply explanation summary overview outline list example examples breakdown
guide steps ways follow follows following followed below above here here's provide provides provided providing given
give gives based according information detail details mention mentions mentioned stated described include includes
including found summarize summarized summarise summarised brief briefly concise detailed final further additional
enough
conclusion conclude concluded questions sure certainly absolutely definitely course okay ok yes great hello hi hey
welcome thanks thank glad happy pleased help assist assistance let let's know sorry apologize unfortunately please
ask unable cannot alternatively regarding solely also finally overall i'd i'll

hier folgt folgende folgenden folgendes zusammenfassung kurze kurz kurzer überblick übersicht liste beispiel beispiele
schritte punkte fragen text texten textes basierend grundlage basis laut gemäß angegebenen bereitgestellten quellen
informationen information natürlich gerne gern sicher klar ja hallo danke guten tag antworten lautet wichtigsten gibt
folgt unten oben leider

voici suivant suivants suivante suivantes résumé bref brève concis liste exemple exemples étapes points questions
réponse selon basé fondé fourni fournis fournies informations extraits bien sûr certainement bonjour salut merci oui
volontiers ci-dessous dessous après suit

aquí siguiente siguientes continuación resumen breve conciso lista ejemplo ejemplos pasos puntos preguntas según
basado basándose proporcionado proporcionados proporcionada información texto claro supuesto por hola gracias sí
presenta tiene tienes principales

ecco seguente seguenti seguito riassunto breve sintesi conciso elenco esempio esempi passaggi punti domande secondo
base basato fornito forniti fornite informazioni testo certo certamente ciao grazie sì

aqui seguinte seguintes seguir resumo breve conciso lista exemplo exemplos passos etapas pontos perguntas segundo
acordo fornecido fornecidos fornecidas informações texto claro certamente olá obrigado sim está

hier volgt volgende samenvatting korte beknopte overzicht lijst voorbeeld voorbeelden stappen punten vragen volgens
gebaseerd verstrekte gegeven informatie tekst natuurlijk zeker graag hallo bedankt ja

här följer följande sammanfattning kort kortfattad översikt lista exempel punkter frågor enligt baserat angivna
givna information texten avsnitt avsnittet passagen självklart visst gärna hej tack ja nedan

вот ниже следующее следующие краткое краткий краткая изложение резюме обзор список пример примеры шаги пункты вопросы
вопроса вопрос согласно основе основании предоставленных предоставленной информации информация отрывка отрывков текста
источников конечно привет здравствуйте спасибо да на по из и в с это к

فيما يلي إليك ملخص موجز مختصر قصير للنص النص للمقطع المقطع المقاطع قائمة مثال أمثلة خطوات الخطوات التالية التالي
الأسئلة السؤال الإجابة وفقا وفقًا بناء بناءً استنادا على إلى من في عن هو هي هذا هذه المقدمة المعلومات بالطبع بالتأكيد
مرحبا مرحبًا أهلا شكرا شكرًا نعم

להלן הנה סיכום תקציר קצר תמציתי רשימה דוגמה דוגמאות שלבים השלבים הבאים הבאות שאלות השאלה התשובה לפי בהתאם
המידע הקטע הטקסט המקורות של על זה זו הוא היא כמובן בטח שלום תודה כן

यहाँ यहां नीचे निम्नलिखित संक्षिप्त सारांश सार सूची उदाहरण कदम बिंदु प्रश्नों दिए दी गई गए के का की में पर आधार
अनुसार जानकारी अनुच्छेद पाठ स्रोतों है हैं यह ज़रूर जरूर बेशक नमस्ते धन्यवाद हाँ हां

다음은 다음 아래는 아래 요약 요약입니다 간단한 간략한 간결한 목록 목록입니다 예시 예시입니다 단계
단계입니다 지문 지문의 글의 제공된 주어진 정보 내용 내용입니다 바탕으로 따르면 답변입니다 같습니다
물론입니다 물론이죠 네 안녕하세요 감사합니다 입니다
"""
ANNOUNCING = LABELS | words_of(_WORDS)

LEADING = words_of(
    """
    main key general common specific correct possible potential various several different certain first other
    short quick simple complete comprehensive ways methods options points parts differences reasons things tips
    ideas factors perform use using used consider need want asked try take look inferred interpreted suggest
    suggests wichtigsten mögliche verschiedene principaux principales différents différentes posibles diferentes
    principali diversi possibili principais possíveis belangrijkste verschillende mogelijke viktigaste olika
    möjliga основные возможные различные الرئيسية المختلفة
    """
)
"""Words that may claim something, but not in a sentence that ends in a colon: "Some possible ways are:"."""

# Chinese and Japanese have no blanks: these are cut out of a sentence before its words are counted.
_PHRASES = words_of(
    """
    以下 如下 下面 下列 上述 这是 這是 该 該 这 這 此 段落 段 文章 文本 文档 文件 资料 資料 来源 來源 内容 內容
    上下文 的 是 了 和 对 對 为 為 根据 根據 基于 基於 按照 提供 给出 給出 所 您 你 我 一个 一個 一份 关于 關於
    简要 簡要 简短 簡短 简洁 簡潔 简单 簡單 总结 總結 概述 概要 摘要 列表 示例 例子 步骤 步驟 要点 要點 问题
    問題 回答 答案 信息 資訊 主要 几个 幾個 一些 当然 當然 好的 可以 没问题 沒問題 你好 您好 谢谢 謝謝 次 に を
    は が の で と も です ます した する ました まとめ 要約 簡単 一覧 例 手順 質問 本文 情報 され された
    基づいて 基づく もとに 示します 示す 説明 します とおり 通り もちろん はい こんにちは ありがとうございます
    以下の な 答えは 答え 答案是
    """
)
PHRASES = regex.compile("|".join(sorted(_PHRASES, key=lambda phrase: (-len(phrase), phrase))))

COUNTS = {
    word: value
    for value, words in enumerate(
        (
            "two zwei deux dos due dois twee två два",
            "three drei trois tres tre três drie tre три",
            "four vier quatre cuatro quattro quatro vier fyra четыре",
            "five fünf cinq cinco cinque cinco vijf fem пять",
            "six sechs six seis sei seis zes sex шесть",
            "seven sieben sept siete sette sete zeven sju семь",
            "eight acht huit ocho otto oito acht åtta восемь",
            "nine neun neuf nueve nove nove negen nio девять",
            "ten zehn dix diez dieci dez tien tio десять",
        ),
        2,
    )
    for word in words.split()
}
"""Numbers in words, as in "Here are five steps:"."""
